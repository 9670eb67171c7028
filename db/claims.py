"""The claim: of all queued runs the one that may start now, taken so that no other claimer has it (REC-2.2).

What an agent may run at once is a matter of all its runs, so claimers of one agent go one after the other: each holds
the agent's row. Several statements, because a count must be read after the lock is held, not in the statement that
waits for it.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from db.errors import DbError
from db.lifecycle import CLAIMED, QUEUED, RUN
from db.pauses import PAUSED
from db.statement import Statement
from db.states import WAKEABLE

LEASE: Final = dt.timedelta(seconds=60)

# How far down the line a claimer looks before it asks agent by agent: what stands in front may all have to wait.
_FIRST: Final = 100

# A row `runs`: in line, and its retry has come.
_DUE: Final = f"""
    runs.{QUEUED}
    AND (runs.scheduled_retry_at IS NULL OR runs.scheduled_retry_at <= office_now())"""

# Of a row `agents`: how many runs it may execute at once, and how many it does.
LIMIT: Final = "greatest(coalesce(agents.max_concurrent_sessions, 1), 1)"
BUSY: Final = f"(SELECT count(*) FROM runs busy WHERE busy.agent_profile_id = agents.id AND busy.{CLAIMED})"
# Agents that are wakeable, in a workspace that works. A replay's is never claimed.
AGENTS: Final = "agents JOIN workspaces ON workspaces.id = agents.workspace_id"
AT_WORK: Final = f"agents.status = '{WAKEABLE}' AND NOT workspaces.is_replay AND NOT {PAUSED}"
# And with an execution to spare.
_FREE: Final = f"{AT_WORK} AND {BUSY} < {LIMIT}"

# The agent: no other claimer's count may change. The workspace: a pause waits until its last claim is committed, and
# then finds it. Nothing that merely refers to either has to wait.
_LOCKS: Final = "FOR NO KEY UPDATE OF agents {wait} FOR KEY SHARE OF workspaces {wait}"

_NEXT_IN_LINE: Final = Statement(f"""
    SELECT agents.id
    FROM (SELECT id, agent_profile_id, requested_at, status, scheduled_retry_at
          FROM runs WHERE {QUEUED} ORDER BY requested_at, id LIMIT {_FIRST}) runs
    JOIN ({AGENTS}) ON agents.id = runs.agent_profile_id
    WHERE {_DUE} AND {_FREE} AND agents.id <> ALL(CAST(:passed AS text[]))
    ORDER BY runs.requested_at, runs.id LIMIT 1 {_LOCKS.format(wait="SKIP LOCKED")}""")

# An agent that another claimer holds is waited for when there is no other: what it leaves over would be nobody's.
_NEXT_OF_ANY_AGENT: Final = f"""
    SELECT agents.id
    FROM {AGENTS}
    CROSS JOIN LATERAL (SELECT requested_at, id FROM runs WHERE agent_profile_id = agents.id AND {_DUE}
                        ORDER BY requested_at, id LIMIT 1) first
    WHERE {_FREE} AND agents.id <> ALL(CAST(:passed AS text[]))
    ORDER BY first.requested_at, first.id LIMIT 1 """
_NEXT_UNHELD: Final = Statement(_NEXT_OF_ANY_AGENT + _LOCKS.format(wait="SKIP LOCKED"))
_NEXT_HELD: Final = Statement(_NEXT_OF_ANY_AGENT + _LOCKS.format(wait=""))

# The agent's oldest. Its task is held until the claim commits, so that whoever changes who drives it comes before, as
# the staleness check sees, or after, and finds the claim. Nothing but an agent is waited for: no two wait in a ring.
_TAKE: Final = Statement(f"""
    UPDATE runs SET status = '{RUN["claim"].target}', attempt = attempt + 1, scheduled_retry_at = NULL,
           claimed_at = office_now(), lease_token = CAST(:token AS uuid),
           lease_expires_at = office_now() + CAST(:lease AS interval)
    WHERE id = (
        WITH oldest AS (
            SELECT runs.id, runs.task_id FROM runs JOIN ({AGENTS}) ON agents.id = runs.agent_profile_id
            WHERE agents.id = :agent_profile_id AND {_DUE} AND {_FREE}
            ORDER BY runs.requested_at, runs.id LIMIT 1
            FOR UPDATE OF runs SKIP LOCKED),
        held AS (SELECT tasks.id FROM tasks, oldest WHERE tasks.id = oldest.task_id FOR KEY SHARE OF tasks SKIP LOCKED)
        SELECT oldest.id FROM oldest LEFT JOIN held ON true
        WHERE held.id IS NOT NULL OR NOT EXISTS (SELECT FROM tasks WHERE tasks.id = oldest.task_id))
    RETURNING id, agent_profile_id, reason, payload, task_id, idempotency_key, coalesced_count, requested_at, attempt,
              lease_token""")

# As many as could start at this moment, up to a bound.
_STARTABLE: Final = Statement(f"""
    SELECT count(*) FROM (
        SELECT FROM {AGENTS}
        CROSS JOIN LATERAL (SELECT FROM runs WHERE agent_profile_id = agents.id AND {_DUE}
                            LIMIT greatest({LIMIT} - {BUSY}, 0)) run
        WHERE {_FREE} LIMIT :most) startable""")


class Claimed(NamedTuple):
    """A run that is ours to execute as long as `lease_token` stands on its row."""

    id: uuid.UUID
    agent_profile_id: str
    reason: str
    payload: Any
    task_id: str | None
    idempotency_key: str | None
    coalesced_count: int
    requested_at: dt.datetime
    attempt: int
    lease_token: uuid.UUID


class Overtaken(DbError):
    """The agent that was found has nothing to claim now: another was faster, or holds its run or task. Look again."""

    def __init__(self, agent_profile_id: str) -> None:
        """Say which agent it was: it is to be passed over then."""
        super().__init__(f"agent {agent_profile_id!r} has nothing to claim at the moment")
        self.agent_profile_id = agent_profile_id


def claim(connection: Connection, token: uuid.UUID, passed: Sequence[str] = ()) -> Claimed | None:
    """Claim the next run that may start: the oldest of a wakeable agent below its limit, in a workspace at work.

    Args:
        connection: in a transaction of its own; its end frees the agent for other claimers.
        token: a new one, which every later write must name.
        passed: agents to pass over.

    Returns:
        The run, claimed for `LEASE`; None when nothing may start now.

    Raises:
        Overtaken: nothing is claimed, and the transaction is to be rolled back: to look again while this agent is held
            could be to wait for somebody who waits for us.
    """
    for look in (_NEXT_IN_LINE, _NEXT_UNHELD, _NEXT_HELD):
        if agent_profile_id := look.run(connection, {"passed": list(passed)}).scalar_one_or_none():
            return _take(connection, agent_profile_id, token)
    return None


def startable(connection: Connection, most: int) -> int:
    """Return how many runs could start now, counted up to `most`."""
    count: int = _STARTABLE.run(connection, {"most": most}).scalar_one()
    return count


def _take(connection: Connection, agent_profile_id: str, token: uuid.UUID) -> Claimed:
    params = {"agent_profile_id": agent_profile_id, "token": token, "lease": LEASE}
    row = _TAKE.run(connection, params).one_or_none()
    if row is None:
        raise Overtaken(agent_profile_id)
    return Claimed(*row)
