"""Why an agent was started or was not: the wakes, what they became, and what stands in their way (ADM-10.6)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, TextClause, text

from db.claims import BUSY, LIMIT
from db.listing import NEWEST_WAKES_FIRST

Rows = Sequence[Mapping[str, Any]]

SHOWN: Final = 20
# Behind how many others a run waits is counted no further than this.
AHEAD: Final = 100

# Of a row whose agent is in question: what holds it and all its work back.
_ITS_AGENT: Final = """
    agents.status AS agent_status, agents.workspace_id, pauses.paused_at AS workspace_paused_at,
    pauses.reason AS pause_reason"""
_AND_ITS_PAUSE: Final = "LEFT JOIN pauses ON pauses.workspace_id = agents.workspace_id AND pauses.resumed_at IS NULL"

# An id that names several things (which nothing prevents, and nothing of ours makes) is the first of these.
_NAMED: Final = text("""
    SELECT CASE WHEN EXISTS (SELECT FROM tasks WHERE id = :id) THEN 'task'
                WHEN EXISTS (SELECT FROM runs WHERE id = CAST(:uuid AS uuid)) THEN 'run'
                WHEN EXISTS (SELECT FROM wakes WHERE id = :id) THEN 'wake'
                WHEN EXISTS (SELECT FROM wakes WHERE task_id = :id)
                  OR EXISTS (SELECT FROM runs WHERE task_id = :id) THEN 'task' END""")

WAKE: Final = f"""
    SELECT wakes.id, wakes.requested_at, wakes.reason, wakes.agent_profile_id, wakes.task_id, wakes.key,
           wakes.generation, wakes.keyless_cause, wakes.actor_type, wakes.actor_id, wakes.producer, wakes.mutation_id,
           wakes.state, wakes.outcome, wakes.gate, wakes.run_id, wakes.observed, wakes.refusal, wakes.decided_at,
           wakes.attempts, wakes.last_error, wakes.next_attempt_at, mutations.actor_type AS mutation_actor_type,
           mutations.actor_id AS mutation_actor_id, office_now() AS now, {_ITS_AGENT}
    FROM wakes LEFT JOIN mutations ON mutations.id = wakes.mutation_id
    LEFT JOIN agents ON agents.id = wakes.agent_profile_id {_AND_ITS_PAUSE}"""
# Whatever was merged into a run or found it was decided within a day of its request: gates 3 and 4 look no further. An
# index of their own would be paid for by every admission.
_REQUESTED: Final = "(SELECT runs.requested_at FROM runs WHERE runs.id = CAST(:id AS uuid))"
_NAMES_THE_RUN: Final = f"""
    wakes.state <> 'owed' AND wakes.run_id = CAST(:id AS uuid)
    AND wakes.decided_at BETWEEN {_REQUESTED} AND {_REQUESTED} + interval '1 day'"""
_WAKES: Final = {
    "task": text(f"{WAKE} WHERE wakes.task_id = :id {NEWEST_WAKES_FIRST}"),
    "run": text(f"{WAKE} WHERE {_NAMES_THE_RUN} {NEWEST_WAKES_FIRST}"),
    "wake": text(f"{WAKE} WHERE wakes.id = :id {NEWEST_WAKES_FIRST}"),
}

_RUN: Final = f"""
    SELECT runs.id, runs.agent_profile_id, runs.reason, runs.task_id, runs.status, runs.attempt, runs.requested_at,
           runs.claimed_at, runs.lease_expires_at, runs.scheduled_retry_at, runs.cancel_requested_at,
           runs.cancel_reason, runs.finished_at, runs.error, office_now() AS now, {_ITS_AGENT},
           coalesce(workspaces.is_replay, false) AS is_replay, {LIMIT} AS executing_limit,
           CASE WHEN runs.status = 'queued' THEN {BUSY} END AS executing,
           CASE WHEN runs.status = 'queued' THEN (SELECT count(*) FROM (
               SELECT FROM runs before WHERE before.agent_profile_id = runs.agent_profile_id
                 AND before.status = 'queued' AND (before.requested_at, before.id) < (runs.requested_at, runs.id)
                 AND coalesce(before.scheduled_retry_at <= office_now(), true) LIMIT {AHEAD}) ahead) END AS ahead
    FROM runs LEFT JOIN agents ON agents.id = runs.agent_profile_id
    LEFT JOIN workspaces ON workspaces.id = agents.workspace_id {_AND_ITS_PAUSE}"""
_RUNS: Final = text(f"{_RUN} WHERE runs.id = ANY(CAST(:ids AS uuid[]))")
_RUNS_OF_TASK: Final = text(
    f"{_RUN} WHERE runs.task_id = :task_id ORDER BY runs.requested_at DESC, runs.id DESC LIMIT :most"
)

_BLOCKERS: Final = text("""
    SELECT blocker.id, blocker.status FROM blockers JOIN tasks blocker ON blocker.id = blockers.blocker_id
    WHERE blockers.task_id = :task_id AND blocker.status <> 'done' ORDER BY blocker.id LIMIT :most""")


def kind_of(connection: Connection, named: str) -> str | None:
    """Return whether an id names a `task`, a `run` or a `wake`; None when it names nothing."""
    kind: str | None = connection.execute(_NAMED, {"id": named, "uuid": _uuid(named)}).scalar_one()
    return kind


def wakes_of(connection: Connection, kind: str, named: str) -> Rows:
    """Return the newest wakes of a task or of a run, or the one wake, each with what holds its agent back."""
    return _rows(connection, _WAKES[kind], id=_uuid(named) if kind == "run" else named, most=SHOWN)


def runs(connection: Connection, ids: Iterable[uuid.UUID]) -> Rows:
    """Return those runs, each with what it waits for; a run that was purged is missing."""
    return _rows(connection, _RUNS, ids=sorted(set(ids)))


def runs_of_task(connection: Connection, task_id: str) -> Rows:
    """Return the newest runs of a task, each with what it waits for."""
    return _rows(connection, _RUNS_OF_TASK, task_id=task_id, most=SHOWN)


def open_blockers(connection: Connection, task_id: str) -> Rows:
    """Return what a task still waits for."""
    return _rows(connection, _BLOCKERS, task_id=task_id, most=SHOWN)


def _uuid(named: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(named)
    except ValueError:
        return None


def _rows(connection: Connection, query: TextClause, **params: Any) -> Rows:  # noqa: ANN401 - what the query names
    return [dict(row) for row in connection.execute(query, params).mappings()]
