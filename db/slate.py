"""The effective slate: who sits on a task at its current step (SES-2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, text

# The task's own rows and its step's templates; a row of the task takes precedence over a template of the same role and
# agent. A task without a step has no slate.
_SLATE: Final = text("""
    SELECT seats.role, seats.agent_profile_id FROM tasks
    JOIN seats ON seats.step_id = tasks.step_id AND (seats.task_id = tasks.id OR seats.task_id IS NULL)
    WHERE tasks.id = :task_id AND seats.agent_profile_id <> ''
    GROUP BY seats.role, seats.agent_profile_id ORDER BY seats.agent_profile_id, seats.role""")


class Seated(NamedTuple):
    """One capacity of one agent on a task."""

    role: str
    agent_profile_id: str


def slate(connection: Connection, task_id: str) -> Sequence[Seated]:
    """Return the effective slate of the task, ordered by agent, then role."""
    return [Seated(*row) for row in connection.execute(_SLATE, {"task_id": task_id})]
