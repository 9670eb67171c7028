"""What is owed and by whom nobody answers: the relay's questions, and what a resumed workspace takes up (PRO-6.4)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, RowMapping, text

from db.clock import AT
from db.lifecycle import OWED, WAKE
from db.pauses import PAUSED
from db.runner import RUNNER_OF_TASK

# The fast path has that long to do it by itself.
GRACE: Final = dt.timedelta(seconds=2)

_GAP: Final = "least(interval '5 s' * power(2, least(attempts, 20)), interval '10 min')"

_DUE_WAKES: Final = text(f"""
    SELECT * FROM wakes
    WHERE {OWED} AND requested_at <= office_now() - CAST(:grace AS interval)
      AND (next_attempt_at IS NULL OR next_attempt_at <= office_now())
      AND NOT EXISTS (SELECT FROM agents WHERE agents.id = wakes.agent_profile_id AND {PAUSED})
    ORDER BY requested_at, id LIMIT :most""")

_DUE_MUTATIONS: Final = text("""
    SELECT id FROM mutations
    WHERE settled_at IS NULL AND committed_at <= office_now() - CAST(:grace AS interval)
      AND (next_attempt_at IS NULL OR next_attempt_at <= office_now())
    ORDER BY committed_at, id LIMIT :most""")

_POSTPONE_WAKE: Final = text(f"""
    UPDATE wakes SET last_error = :error, attempts = attempts + 1, next_attempt_at = office_now() + {_GAP}
    WHERE id = :id AND {OWED}""")
_FAILED: Final = text(f"UPDATE wakes SET last_error = :error WHERE id = :id AND {OWED}")
_POSTPONE_MUTATION: Final = text(f"""
    UPDATE mutations SET attempts = attempts + 1, next_attempt_at = office_now() + {_GAP}
    WHERE id = :id AND settled_at IS NULL""")

# An assignment that a later one made moot, or that was made without a generation to an agent who is the runner no more.
_SUPERSEDE: Final = text(f"""
    UPDATE wakes SET state = '{WAKE["supersede"].target}', decided_at = {AT}
    FROM agents, tasks
    WHERE wakes.state IN ({WAKE["supersede"].expected}) AND wakes.reason = 'task_assigned'
      AND agents.id = wakes.agent_profile_id AND agents.workspace_id = :workspace_id AND tasks.id = wakes.task_id
      AND CASE WHEN wakes.generation IS NOT NULL THEN wakes.generation < tasks.assignment_generation
               ELSE wakes.key IS NULL AND {RUNNER_OF_TASK} IS DISTINCT FROM wakes.agent_profile_id END
    RETURNING wakes.id, wakes.task_id, wakes.agent_profile_id, wakes.generation""")

_OF_WORKSPACE: Final = text(f"""
    SELECT wakes.* FROM wakes JOIN agents ON agents.id = wakes.agent_profile_id
    WHERE wakes.{OWED} AND agents.workspace_id = :workspace_id
    ORDER BY wakes.requested_at, wakes.id LIMIT :most""")


class Superseded(NamedTuple):
    """A wake that was closed undecided."""

    wake_id: str
    task_id: str | None
    agent_profile_id: str
    generation: int | None


def due_wakes(connection: Connection, most: int) -> Sequence[RowMapping]:
    """Return owed wakes whose next attempt has come and whose workspace is not paused, oldest first (REC-3.1)."""
    return connection.execute(_DUE_WAKES, {"grace": GRACE, "most": most}).mappings().all()


def due_mutations(connection: Connection, most: int) -> Sequence[str]:
    """Return unsettled mutations whose next attempt has come, oldest first."""
    return connection.execute(_DUE_MUTATIONS, {"grace": GRACE, "most": most}).scalars().all()


def postpone_wake(connection: Connection, wake_id: str, error: str) -> None:
    """Leave a wake owed after an attempt that failed; the gap to the next doubles, from 5 s to 10 min."""
    connection.execute(_POSTPONE_WAKE, {"id": wake_id, "error": error})


def record_failure(connection: Connection, wake_id: str, error: str) -> None:
    """Say why an attempt failed whose gap is set already."""
    connection.execute(_FAILED, {"id": wake_id, "error": error})


def postpone_mutation(connection: Connection, mutation_id: str) -> None:
    """Leave a mutation unsettled after an attempt that failed; the gaps are those of a wake."""
    connection.execute(_POSTPONE_MUTATION, {"id": mutation_id})


def supersede(connection: Connection, workspace_id: str, instant: dt.datetime | None) -> Sequence[Superseded]:
    """Close the workspace's owed assignments that a later one made moot (PRO-6.4); return them."""
    rows = connection.execute(_SUPERSEDE, {"workspace_id": workspace_id, "instant": instant})
    return [Superseded(*row) for row in rows]


def of_workspace(connection: Connection, workspace_id: str, most: int) -> Sequence[RowMapping]:
    """Return the workspace's owed wakes, oldest first."""
    return connection.execute(_OF_WORKSPACE, {"workspace_id": workspace_id, "most": most}).mappings().all()
