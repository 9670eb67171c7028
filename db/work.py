"""What a claimed run is about: its agent, and its task with whoever drives it now (REC-2.3, REC-2.4)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from sqlalchemy import Connection

from db.runner import RUNNER_OF_TASK
from db.statement import Statement
from db.states import WAKEABLE


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """The agent that is to work."""

    id: str
    workspace_id: str
    name: str
    role: str


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """The task that the run's payload names, as it stands at the claim."""

    id: str
    title: str
    status: str
    priority: str
    step_id: str | None
    project_id: str | None
    parent_id: str | None
    runner_id: str | None


_OF_AGENT: Final = [f"agents.{field.name}" for field in fields(AgentFacts)]
_OF_TASK: Final = [f"tasks.{field.name}" for field in fields(TaskFacts) if field.name != "runner_id"]
_SEEN: Final = Statement(f"""
    SELECT {", ".join(_OF_AGENT + _OF_TASK)},
           CASE WHEN tasks.id IS NOT NULL THEN {RUNNER_OF_TASK} END
    FROM agents LEFT JOIN tasks ON tasks.id = CAST(:task_id AS text)
    WHERE agents.id = :agent_profile_id""")


def seen(connection: Connection, agent_profile_id: str, task_id: str | None) -> tuple[AgentFacts, TaskFacts | None]:
    """Return the agent, and the task when there is one."""
    row = _SEEN.run(connection, {"agent_profile_id": agent_profile_id, "task_id": task_id}).one()
    agent, task = row[: len(_OF_AGENT)], row[len(_OF_AGENT) :]
    return AgentFacts(*agent), TaskFacts(*task) if task[0] is not None else None


_COORDINATOR: Final = Statement(f"""
    SELECT coordinators.id FROM agents failing JOIN agents coordinators USING (workspace_id)
    WHERE failing.id = :agent_profile_id AND coordinators.role = :role
    ORDER BY coordinators.status = '{WAKEABLE}' DESC, coordinators.created_at, coordinators.id LIMIT 1""")


def coordinator_of(connection: Connection, agent_profile_id: str, role: str) -> str | None:
    """Return who bears `role` in the agent's workspace: first one that can be woken, then the oldest; or None."""
    return _COORDINATOR.run(connection, {"agent_profile_id": agent_profile_id, "role": role}).scalar_one_or_none()
