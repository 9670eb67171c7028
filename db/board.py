"""Questions about one task and its people, and the writes that assign it."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, text

from db.errors import DbError
from db.runner import RUNNER_OF_TASK


class Standing(NamedTuple):
    """Where a task stands, as an assignment or an event needs to know it."""

    task_id: str
    workspace_id: str
    step_id: str | None
    project_id: str | None
    assignment_generation: int
    runner_id: str | None
    step_found: bool
    auto_start: bool | None
    on_office_workflow: bool


class Person(NamedTuple):
    """An agent, as a permission check needs it."""

    id: str
    workspace_id: str | None
    role: str
    permissions: list[str] | None


# One row at least, whoever is found: what is locked and who is known, in one round trip.
_LOCK: Final = text("""
    WITH locked AS (SELECT id FROM tasks WHERE id = :task_id FOR UPDATE)
    SELECT locked.id IS NOT NULL, agents.id, agents.workspace_id, agents.role, agents.permissions
    FROM (SELECT) one LEFT JOIN locked ON true LEFT JOIN agents ON agents.id = ANY(:ids)""")

_STANDING: Final = text(f"""
    SELECT tasks.id AS task_id, tasks.workspace_id, tasks.step_id, tasks.project_id, tasks.assignment_generation,
           {RUNNER_OF_TASK} AS runner_id, here.id IS NOT NULL AS step_found, here.auto_start,
           coalesce(tasks.workflow_id = workspaces.office_workflow_id, false) AS on_office_workflow
    FROM tasks JOIN workspaces ON workspaces.id = tasks.workspace_id LEFT JOIN steps here ON here.id = tasks.step_id
    WHERE tasks.id = :task_id""")

_PEOPLE: Final = text("SELECT id, workspace_id, role, permissions FROM agents WHERE id = ANY(:ids)")

# The seat at the current step is the assignment (PRO-2.6); taking it again makes it the newest.
_TAKE_SEAT: Final = text("""
    WITH seat AS (
        INSERT INTO seats (id, task_id, step_id, role, agent_profile_id, created_at)
        VALUES (:seat_id, :task_id, :step_id, 'runner', :agent_profile_id, :instant)
        ON CONFLICT (task_id, step_id) WHERE role = 'runner' AND task_id IS NOT NULL
        DO UPDATE SET agent_profile_id = excluded.agent_profile_id, created_at = excluded.created_at, id = excluded.id)
    UPDATE tasks SET assignment_generation = assignment_generation + 1, updated_at = :instant
    WHERE id = :task_id RETURNING assignment_generation""")

# At every step: else an older seat would come back as the runner (PRO-2.6).
_LEAVE_SEATS: Final = text("""
    WITH seat AS (DELETE FROM seats WHERE task_id = :task_id AND role = 'runner')
    UPDATE tasks SET assignment_generation = assignment_generation + 1, updated_at = :instant
    WHERE id = :task_id RETURNING assignment_generation""")


def lock_task(connection: Connection, task_id: str, *ids: str | None) -> tuple[bool, Mapping[str, Person]]:
    """Lock the task's row until the transaction ends; return whether there is one, and those of the agents that exist.

    A statement of its own: what is read about the task after it sees everything that the lock waited for.
    """
    rows = connection.execute(_LOCK, {"task_id": task_id, "ids": [agent_id for agent_id in ids if agent_id]}).all()
    return rows[0][0], {person[1]: Person(*person[1:]) for person in rows if person[1]}


def standing(connection: Connection, task_id: str) -> Standing | None:
    """Return where the task stands, or None when there is no such task."""
    row = connection.execute(_STANDING, {"task_id": task_id}).one_or_none()
    return None if row is None else Standing(*row)


def people(connection: Connection, *ids: str | None) -> Mapping[str, Person]:
    """Return those of the agents that exist, by id."""
    wanted = [agent_id for agent_id in ids if agent_id]
    if not wanted:
        return {}
    return {row.id: Person(*row) for row in connection.execute(_PEOPLE, {"ids": wanted})}


def assign(
    connection: Connection,
    standing: Standing,
    agent_profile_id: str | None,
    *,
    seat_id: uuid.UUID,
    instant: dt.datetime,
) -> int:
    """Write or delete the runner seat and bump the generation; return the generation (PRO-2.1).

    Raises:
        DbError: the generation could not be read back, so the assignment must not commit.
    """
    params = {
        "seat_id": seat_id,
        "task_id": standing.task_id,
        "step_id": standing.step_id,
        "agent_profile_id": agent_profile_id,
        "instant": instant,
    }
    generation: int | None = connection.execute(
        _TAKE_SEAT if agent_profile_id else _LEAVE_SEATS, params
    ).scalar_one_or_none()
    if generation is None:
        raise DbError("the assignment's generation could not be read back")
    return generation


_CREATE: Final = text("""
    WITH task AS (
        INSERT INTO tasks (id, workspace_id, project_id, workflow_id, step_id, parent_id, title, priority,
                           assignment_generation, created_at, updated_at)
        VALUES (:id, :workspace_id, :project_id, :workflow_id, :step_id, :parent_id, :title, :priority,
                :generation, :instant, :instant)
        RETURNING id, step_id)
    INSERT INTO seats (id, task_id, step_id, role, agent_profile_id, created_at)
    SELECT :seat_id, id, step_id, 'runner', :assignee_id, :instant FROM task
    WHERE CAST(:assignee_id AS text) IS NOT NULL""")

TASK_ID: Final = "pk_tasks"


def create_task(connection: Connection, columns: Mapping[str, Any]) -> None:
    """Insert a task, and its runner seat when `assignee_id` is set; its generation is given.

    Raises:
        IntegrityError: on `pk_tasks`: the id is taken.
    """
    connection.execute(_CREATE, columns)


class Surroundings(NamedTuple):
    """What a new task would stand on: whether each thing that was named is there, in this workspace."""

    workspace: bool
    project: bool
    step: bool
    parent: bool
    auto_start: bool | None
    workflow_id: str | None
    office_workflow_id: str | None


_SURROUNDINGS: Final = text("""
    SELECT workspaces.id IS NOT NULL, projects.id IS NOT NULL, steps.id IS NOT NULL, tasks.id IS NOT NULL,
           steps.auto_start, steps.workflow_id, workspaces.office_workflow_id
    FROM (SELECT CAST(:workspace_id AS text) AS id) asked
    LEFT JOIN workspaces ON workspaces.id = asked.id
    LEFT JOIN projects ON projects.id = :project_id AND projects.workspace_id = asked.id
    LEFT JOIN steps ON steps.id = :step_id AND steps.workspace_id = asked.id
    LEFT JOIN tasks ON tasks.id = :parent_id AND tasks.workspace_id = asked.id""")


def surroundings(
    connection: Connection, workspace_id: str, *, project_id: str | None, step_id: str | None, parent_id: str | None
) -> Surroundings:
    """Return which of the named workspace, project, step and parent exist together."""
    params = {"workspace_id": workspace_id, "project_id": project_id, "step_id": step_id, "parent_id": parent_id}
    return Surroundings(*connection.execute(_SURROUNDINGS, params).one())
