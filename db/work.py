"""What a claimed run is about: its agent, and its task with whoever drives it now (REC-2.3, REC-2.4)."""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import Connection

from db.runner import RUNNER_OF_TASK
from db.statement import Statement
from db.states import WAKEABLE


class AgentSeen(NamedTuple):
    """The agent that executes."""

    id: str
    workspace_id: str
    name: str
    role: str


class TaskSeen(NamedTuple):
    """The task that the run names, as it stands at the claim."""

    id: str
    title: str
    status: str
    priority: str
    step_id: str | None
    project_id: str | None
    parent_id: str | None
    runner_id: str | None


_SEEN: Final = Statement(f"""
    SELECT {", ".join(f"agents.{name}" for name in AgentSeen._fields)},
           {", ".join(f"tasks.{name}" for name in TaskSeen._fields if name != "runner_id")},
           CASE WHEN tasks.id IS NOT NULL THEN {RUNNER_OF_TASK} END
    FROM agents LEFT JOIN tasks ON tasks.id = CAST(:task_id AS text)
    WHERE agents.id = :agent_profile_id""")


def seen(connection: Connection, agent_profile_id: str, task_id: str | None) -> tuple[AgentSeen, TaskSeen | None]:
    """Return the agent, and the task when there is one."""
    row = _SEEN.run(connection, {"agent_profile_id": agent_profile_id, "task_id": task_id}).one()
    agent, task = row[: len(AgentSeen._fields)], row[len(AgentSeen._fields) :]
    return AgentSeen(*agent), TaskSeen(*task) if task[0] is not None else None


_COORDINATOR: Final = Statement(f"""
    SELECT coordinators.id FROM agents failing JOIN agents coordinators USING (workspace_id)
    WHERE failing.id = :agent_profile_id AND coordinators.role = :role
    ORDER BY coordinators.status = '{WAKEABLE}' DESC, coordinators.created_at, coordinators.id LIMIT 1""")


def coordinator_of(connection: Connection, agent_profile_id: str, role: str) -> str | None:
    """Return who bears `role` in the agent's workspace: first one that can be woken, then the oldest; or None."""
    return _COORDINATOR.run(connection, {"agent_profile_id": agent_profile_id, "role": role}).scalar_one_or_none()
