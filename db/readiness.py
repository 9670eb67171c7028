"""Whether what a task waited for is over: its blockers, its children. And who is locked while that is read.

The tasks that may become ready are locked before their sets are read: of two blockers that are done at once, the second
transaction sees the first. Lock order: the changed task, then what waits for it, by id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, text

from db.runner import IS_OFFICE_TASK, RUNNER_OF_TASK
from db.states import TASK_CLOSED, literals

_LOCK_WAITING: Final = text("""
    SELECT tasks.id FROM tasks
    WHERE tasks.id IN (SELECT blockers.task_id FROM blockers WHERE blockers.blocker_id = :task_id
                       UNION ALL SELECT child.parent_id FROM tasks child WHERE child.id = :task_id)
    ORDER BY tasks.id FOR UPDATE""")

_UNBLOCKED: Final = text(f"""
    SELECT tasks.id AS task_id, {RUNNER_OF_TASK} AS runner_id, array_agg(blocker.id) AS ids,
           bool_or({IS_OFFICE_TASK}) AS is_office
    FROM blockers mine JOIN tasks ON tasks.id = mine.task_id
    JOIN blockers theirs ON theirs.task_id = tasks.id JOIN tasks blocker ON blocker.id = theirs.blocker_id
    WHERE mine.blocker_id = :task_id
    GROUP BY tasks.id HAVING bool_and(blocker.status = 'done')
    ORDER BY tasks.id""")

_COMPLETED: Final = text(f"""
    SELECT tasks.id AS task_id, {RUNNER_OF_TASK} AS runner_id, array_agg(child.id) AS ids,
           bool_or({IS_OFFICE_TASK}) AS is_office
    FROM tasks me JOIN tasks ON tasks.id = me.parent_id JOIN tasks child ON child.parent_id = tasks.id
    WHERE me.id = :task_id
    GROUP BY tasks.id HAVING bool_and(child.status IN ({literals(TASK_CLOSED)}))""")


class Ready(NamedTuple):
    """A task whose whole set is over, and the set that was read to say so."""

    task_id: str
    runner_id: str | None
    ids: list[str]
    is_office: bool


def lock_waiting(connection: Connection, task_id: str) -> None:
    """Lock the dependents and the parent of a task until the transaction ends."""
    connection.execute(_LOCK_WAITING, {"task_id": task_id})


def unblocked_by(connection: Connection, task_id: str) -> Sequence[Ready]:
    """Return the dependents of the task whose blockers are all done."""
    return [Ready(*row) for row in connection.execute(_UNBLOCKED, {"task_id": task_id})]


def completed_by(connection: Connection, task_id: str) -> Sequence[Ready]:
    """Return the parent of the task, when all its children are terminal."""
    return [Ready(*row) for row in connection.execute(_COMPLETED, {"task_id": task_id})]
