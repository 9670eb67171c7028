"""Sessions: one live conversation of a (task, agent) pair, taken up by each run of theirs (REC-2.5)."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import Connection

from db.clock import AT
from db.lifecycle import CLAIMED, SESSION
from db.statement import Statement
from db.states import SESSION_LIVE, literals

# The live one, or a new one; whoever comes second finds the first one's.
_OBTAIN: Final = Statement(f"""
    WITH session AS (
        INSERT INTO sessions (id, task_id, agent_profile_id, state)
        VALUES (CAST(:new_id AS uuid), :task_id, :agent_profile_id, '{SESSION["start"].target}')
        ON CONFLICT (task_id, agent_profile_id) WHERE state IN ({literals(SESSION_LIVE)})
        DO UPDATE SET state = '{SESSION["start"].target}', updated_at = office_now()
        RETURNING id, created_at)
    UPDATE runs SET session_id = session.id FROM session WHERE runs.id = :run_id
    RETURNING session.id, session.created_at, session.id = CAST(:new_id AS uuid)""")

# The lock first, the count of others after it: one that starts in this very moment is seen, or sees us.
_HOLD: Final = Statement(f"SELECT id FROM sessions WHERE id = :id AND state IN ({SESSION['rest'].expected}) FOR UPDATE")
_REST: Final = Statement(f"""
    UPDATE sessions SET state = '{SESSION["rest"].target}', updated_at = office_now()
    WHERE id = :id AND state IN ({SESSION["rest"].expected})
      AND NOT EXISTS (SELECT FROM runs WHERE runs.agent_profile_id = sessions.agent_profile_id
                      AND runs.{CLAIMED} AND runs.session_id = sessions.id)""")


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """The conversation of an agent on a task: the live one, or one that begins with this run."""

    id: uuid.UUID
    created_at: dt.datetime
    is_new: bool


def obtain(
    connection: Connection, run_id: uuid.UUID, task_id: str, agent_profile_id: str, new_id: uuid.UUID
) -> SessionFacts:
    """Return the pair's live session, or a new one, and write it on the run.

    Args:
        connection: in the transaction that claimed the run. Lock order: agent, run, session.
        run_id: the run, claimed.
        task_id: the run's task.
        agent_profile_id: the run's agent.
        new_id: the id of the session if there is none yet.
    """
    params = {"run_id": run_id, "task_id": task_id, "agent_profile_id": agent_profile_id, "new_id": new_id}
    return SessionFacts(*_OBTAIN.run(connection, params).one())


def rest(connection: Connection, session_id: uuid.UUID) -> None:
    """Let a session idle when no other run executes in it; one that has ended is left as it is."""
    if _HOLD.run(connection, {"id": session_id}).one_or_none():
        _REST.run(connection, {"id": session_id})


_COMPLETE: Final = f"""
    UPDATE sessions SET state = '{SESSION["complete"].target}', reason = :reason, ended_at = {AT}, updated_at = {AT}
    FROM (SELECT id AS live_id, state AS from_state FROM sessions
          WHERE {{whose}} AND state IN ({SESSION["complete"].expected}) ORDER BY id FOR UPDATE) live
    WHERE id = live_id
    RETURNING CAST(id AS text), task_id, agent_profile_id, from_state"""

_COMPLETE_ONE: Final = Statement(_COMPLETE.format(whose="task_id = :task_id AND agent_profile_id = :agent_profile_id"))
_COMPLETE_ALL: Final = Statement(_COMPLETE.format(whose="agent_profile_id = :agent_profile_id"))


class Completed(NamedTuple):
    """A session that was ended, and the state that it ended from."""

    session_id: str
    task_id: str
    agent_profile_id: str
    from_state: str


def complete(
    connection: Connection, task_id: str, agent_profile_id: str, reason: str, instant: dt.datetime | None = None
) -> Completed | None:
    """End the live session of the pair; None, and nothing written, when there is none (SES-1.4, SES-1.11)."""
    whose = {"task_id": task_id, "agent_profile_id": agent_profile_id, "reason": reason, "instant": instant}
    row = _COMPLETE_ONE.run(connection, whose).one_or_none()
    return Completed(*row) if row else None


def complete_all(
    connection: Connection, agent_profile_id: str, reason: str, instant: dt.datetime | None = None
) -> Sequence[Completed]:
    """End every live session of the agent, on every task (SES-1.10)."""
    whose = {"agent_profile_id": agent_profile_id, "reason": reason, "instant": instant}
    return [Completed(*row) for row in _COMPLETE_ALL.run(connection, whose)]
