"""The effective slate: who sits on a task at its current step (SES-2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, text

# Rows for a row `tasks` of the statement around them: the task's own seats and its step's templates. A task without a
# step has none. Two branches, since no index finds "of this task or of none": an agent that sits on every task would be
# looked for on all of them.
_HERE: Final = "seats.step_id = tasks.step_id AND seats.agent_profile_id <> ''"
SEATED: Final = f"""(
    SELECT role, agent_profile_id, false AS is_template FROM seats WHERE seats.task_id = tasks.id AND {_HERE}
    UNION ALL
    SELECT role, agent_profile_id, true FROM seats WHERE seats.task_id IS NULL AND {_HERE}) seated"""

# A row of the task takes precedence over a template of the same role and agent.
_SLATE: Final = text(f"""
    SELECT seated.role, seated.agent_profile_id, bool_and(seated.is_template) FROM tasks CROSS JOIN LATERAL {SEATED}
    WHERE tasks.id = :task_id
    GROUP BY seated.role, seated.agent_profile_id ORDER BY seated.agent_profile_id, seated.role""")


class Seated(NamedTuple):
    """One seat of one agent on a task; a template is its step's, and sits on every task there."""

    role: str
    agent_profile_id: str
    is_template: bool


def slate(connection: Connection, task_id: str) -> Sequence[Seated]:
    """Return the effective slate of the task, ordered by agent, then role."""
    return [Seated(*row) for row in connection.execute(_SLATE, {"task_id": task_id})]
