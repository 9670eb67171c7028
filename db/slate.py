"""The effective slate: who sits on a task at its current step (SES-2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, text

# A condition over rows `tasks` and `seats`: the task's own rows and its step's templates. A task without a step has no
# slate.
SEATED: Final = """
    seats.step_id = tasks.step_id AND (seats.task_id = tasks.id OR seats.task_id IS NULL)
    AND seats.agent_profile_id <> ''"""

# A row of the task takes precedence over a template of the same role and agent.
_SLATE: Final = text(f"""
    SELECT seats.role, seats.agent_profile_id, bool_and(seats.task_id IS NULL) FROM tasks JOIN seats ON {SEATED}
    WHERE tasks.id = :task_id
    GROUP BY seats.role, seats.agent_profile_id ORDER BY seats.agent_profile_id, seats.role""")


class Seated(NamedTuple):
    """One seat of one agent on a task; a template is its step's, and sits on every task there."""

    role: str
    agent_profile_id: str
    is_template: bool


def slate(connection: Connection, task_id: str) -> Sequence[Seated]:
    """Return the effective slate of the task, ordered by agent, then role."""
    return [Seated(*row) for row in connection.execute(_SLATE, {"task_id": task_id})]
