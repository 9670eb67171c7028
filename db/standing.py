"""How the agents of one task stand: who holds what on it, which sessions live, which ended, and which were kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, TextClause, text

from db.models.wakes import GUARDED
from db.runner import RUNNER_BY, RUNNER_OF_TASK
from db.slate import slate
from db.states import SESSION_LIVE, literals

Rows = Sequence[Mapping[str, Any]]

SHOWN: Final = 20

_TASK: Final = text(f"""
    SELECT id, workspace_id, status, step_id, {RUNNER_OF_TASK} AS runner_id, {RUNNER_BY} AS runner_by
    FROM tasks WHERE id = :task_id""")

_LIVING: Final = text(f"""
    SELECT id, agent_profile_id, state, created_at, updated_at FROM sessions
    WHERE task_id = :task_id AND state IN ({literals(SESSION_LIVE)}) ORDER BY created_at DESC, id DESC LIMIT :most""")

_ENDED: Final = text("""
    SELECT id, agent_profile_id, state, reason, created_at, ended_at FROM sessions
    WHERE task_id = :task_id AND ended_at IS NOT NULL ORDER BY ended_at DESC, id DESC LIMIT :most""")

# What a guarded path came to, where it ended no session that may have lived: what was retained, or why nobody asked.
_KEPT: Final = text(f"""
    SELECT committed_at, agent_profile_id, reason, retained, error, mutation_id FROM (
        SELECT id AS mutation_id, committed_at, facts #>> '{{guard,agent_profile_id}}' AS agent_profile_id,
               facts #>> '{{guard,reason}}' AS reason, result #>> '{{session,error}}' AS error,
               CASE WHEN result IS NULL THEN 'not_asked_yet'
                    WHEN result #>> '{{session,error}}' IS NOT NULL THEN 'not_ended'
                    ELSE result #>> '{{session,retained}}' END AS retained
        FROM mutations WHERE task_id = :task_id AND {GUARDED}) guarded
    WHERE retained IS NOT NULL ORDER BY committed_at DESC, mutation_id DESC LIMIT :most""")


class Latest(NamedTuple):
    """The first of some rows, and whether there are more of them."""

    rows: Rows
    more: bool


class Standing(NamedTuple):
    """How the agents of a task stand. `task` has its `runner_id` and by which tier of the projection that is."""

    task: Mapping[str, Any]
    seats: Latest
    live: Latest
    ended: Latest
    kept: Latest


def standing(connection: Connection, task_id: str) -> Standing | None:
    """Return how the agents of a task stand now, and the latest that happened to their sessions; None for no task.

    In `kept`, `retained` is `runner`, `seat` or `read_failed`; `not_ended` when the terminator failed; `not_asked_yet`
    while the question is to come.
    """
    task = next(iter(_rows(connection, _TASK, task_id, 1)), None)
    if task is None:
        return None
    seats = [seat._asdict() for seat in slate(connection, task_id)]
    latest = (_latest(_rows(connection, query, task_id, SHOWN + 1)) for query in (_LIVING, _ENDED, _KEPT))
    return Standing(task, _latest(seats), *latest)


def _latest(rows: Rows) -> Latest:
    return Latest(rows[:SHOWN], len(rows) > SHOWN)


def _rows(connection: Connection, query: TextClause, task_id: str, most: int) -> Rows:
    return [dict(row) for row in connection.execute(query, {"task_id": task_id, "most": most}).mappings()]
