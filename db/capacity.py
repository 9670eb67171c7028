"""The question: does the agent still hold a capacity on that task (SES-2)?

One statement, so that both halves are of one snapshot: in two, an agent that moves from a seat to being the runner in
between would be missed.
"""

from __future__ import annotations

from typing import Final, Literal

from sqlalchemy import Connection

from db.runner import RUNNER_OF_TASK
from db.slate import SEATED
from db.statement import Statement

Capacity = Literal["runner", "seat"]

_RETAINED: Final = Statement(f"""
    SELECT CASE
        WHEN {RUNNER_OF_TASK} = :agent_profile_id THEN 'runner'
        WHEN EXISTS (SELECT FROM {SEATED} WHERE seated.agent_profile_id = :agent_profile_id) THEN 'seat' END
    FROM tasks WHERE tasks.id = :task_id""")


class Unresolved(LookupError):
    """There is no such task, so nobody can say who holds what on it."""


def retained(connection: Connection, task_id: str, agent_profile_id: str) -> Capacity | None:
    """Return a capacity that the agent holds on the task, or None for none; it need not exist any more (SES-2.4).

    Raises:
        Unresolved: no such task.
    """
    row = _RETAINED.run(connection, {"task_id": task_id, "agent_profile_id": agent_profile_id}).one_or_none()
    if row is None:
        raise Unresolved(task_id)
    held: Capacity | None = row[0]
    return held
