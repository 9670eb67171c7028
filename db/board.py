"""Questions about one task and its people, and the writes that create and move it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from db.clock import AT
from db.runner import IS_OFFICE_TASK, RUNNER_OF_TASK
from db.statement import Statement


class Standing(NamedTuple):
    """Where a task stands, as an assignment or an event needs to know it."""

    task_id: str
    workspace_id: str
    step_id: str | None
    status: str
    assignment_generation: int
    runner_id: str | None
    is_office: bool
    step_found: bool
    auto_start: bool | None


class Person(NamedTuple):
    """An agent, as a permission check needs it."""

    id: str
    workspace_id: str | None
    role: str
    permissions: list[str] | None


# One row at least, whoever is found: what is locked and who is known, in one round trip.
_LOCK: Final = Statement("""
    WITH locked AS (SELECT id FROM tasks WHERE id = :task_id FOR UPDATE)
    SELECT locked.id IS NOT NULL, agents.id, agents.workspace_id, agents.role, agents.permissions
    FROM (SELECT) one LEFT JOIN locked ON true LEFT JOIN agents ON agents.id = ANY(:ids)""")

_STANDING: Final = Statement(f"""
    SELECT tasks.id, tasks.workspace_id, tasks.step_id, tasks.status, tasks.assignment_generation,
           {RUNNER_OF_TASK}, {IS_OFFICE_TASK}, here.id IS NOT NULL, here.auto_start
    FROM tasks LEFT JOIN steps here ON here.id = tasks.step_id
    WHERE tasks.id = :task_id""")

_PEOPLE: Final = Statement("SELECT id, workspace_id, role, permissions FROM agents WHERE id = ANY(:ids)")


def lock_task(connection: Connection, task_id: str, *ids: str | None) -> tuple[bool, Mapping[str, Person]]:
    """Lock the task's row until the transaction ends; return whether there is one, and those of the agents that exist.

    A statement of its own: what is read about the task after it sees everything that the lock waited for.
    """
    rows = _LOCK.run(connection, {"task_id": task_id, "ids": [agent_id for agent_id in ids if agent_id]}).all()
    return rows[0][0], {person[1]: Person(*person[1:]) for person in rows if person[1]}


def standing(connection: Connection, task_id: str) -> Standing | None:
    """Return where the task stands, or None when there is no such task."""
    row = _STANDING.run(connection, {"task_id": task_id}).one_or_none()
    return None if row is None else Standing(*row)


def people(connection: Connection, *ids: str | None) -> Mapping[str, Person]:
    """Return those of the agents that exist, by id."""
    wanted = [agent_id for agent_id in ids if agent_id]
    if not wanted:
        return {}
    return {row.id: Person(*row) for row in _PEOPLE.run(connection, {"ids": wanted})}


_CREATE: Final = Statement(f"""
    WITH task AS (
        INSERT INTO tasks (id, workspace_id, project_id, workflow_id, step_id, parent_id, title, priority,
                           assignment_generation, created_at, updated_at)
        VALUES (:id, :workspace_id, :project_id, :workflow_id, :step_id, :parent_id, :title, :priority,
                :generation, {AT}, {AT})
        RETURNING id, step_id)
    INSERT INTO seats (id, task_id, step_id, role, agent_profile_id, created_at)
    SELECT :seat_id, id, step_id, 'runner', :assignee_id, {AT} FROM task
    WHERE CAST(:assignee_id AS text) IS NOT NULL""")

TASK_ID: Final = "pk_tasks"


def create_task(connection: Connection, columns: Mapping[str, Any]) -> None:
    """Insert a task, and its runner seat when `assignee_id` is set; its generation is given.

    Raises:
        IntegrityError: on `pk_tasks`: the id is taken.
    """
    _CREATE.run(connection, columns)


class Surroundings(NamedTuple):
    """What a new task would stand on: whether each thing that was named is there, in this workspace."""

    workspace: bool
    project: bool
    step: bool
    parent: bool
    auto_start: bool | None
    workflow_id: str | None
    office_workflow_id: str | None


_SURROUNDINGS: Final = Statement("""
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
    return Surroundings(*_SURROUNDINGS.run(connection, params).one())


_SET_STATUS: Final = Statement(f"UPDATE tasks SET status = :status, updated_at = {AT} WHERE id = :task_id")


def set_status(connection: Connection, task_id: str, status: str, instant: dt.datetime | None) -> None:
    """Set the status of a task that is locked."""
    _SET_STATUS.run(connection, {"task_id": task_id, "status": status, "instant": instant})


_STEP: Final = Statement("""
    SELECT EXISTS (SELECT FROM steps JOIN tasks ON tasks.workspace_id = steps.workspace_id
                   WHERE steps.id = :step_id AND tasks.id = :task_id)""")
_ENTER: Final = Statement(f"""
    WITH moved AS (
        INSERT INTO step_transitions (id, task_id, from_step_id, to_step_id, created_at)
        SELECT :transition_id, id, step_id, :step_id, {AT} FROM tasks WHERE id = :task_id
        ON CONFLICT (id) DO NOTHING RETURNING id)
    UPDATE tasks SET step_id = :step_id, updated_at = {AT},
           workflow_id = (SELECT workflow_id FROM steps WHERE id = :step_id)
    FROM moved WHERE tasks.id = :task_id""")

_MOVE: Final = Statement("""
    SELECT EXISTS (SELECT FROM step_transitions
                   WHERE id = :transition_id AND task_id = :task_id AND to_step_id = :step_id)""")


def has_step(connection: Connection, task_id: str, step_id: str) -> bool:
    """Tell whether there is such a step in the task's workspace."""
    return bool(_STEP.run(connection, {"task_id": task_id, "step_id": step_id}).scalar_one())


def enter_step(
    connection: Connection, task_id: str, step_id: str, transition_id: str, instant: dt.datetime | None
) -> bool:
    """Move a task that is locked, and record the transition; False when that transition was recorded before."""
    params = {"task_id": task_id, "step_id": step_id, "transition_id": transition_id, "instant": instant}
    return _ENTER.run(connection, params).rowcount == 1


def is_recorded(connection: Connection, task_id: str, step_id: str, transition_id: str) -> bool:
    """Tell whether the transition that was recorded is this very move."""
    params = {"task_id": task_id, "step_id": step_id, "transition_id": transition_id}
    return bool(_MOVE.run(connection, params).scalar_one())
