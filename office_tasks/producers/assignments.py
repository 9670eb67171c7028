"""Assigning a task: the change of assignee, creation with one, and the event that reports one (PRO-3)."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any

from sqlalchemy import Connection, Engine

from db import board
from db.errors import violates
from office_tasks import keys, validation
from office_tasks.admission import Wake, wake
from office_tasks.errors import InvalidInput, NotFound
from office_tasks.ids import new_id
from office_tasks.permissions import ASSIGN, require
from office_tasks.producers.eligibility import withheld
from office_tasks.producers.mutation import Actor, Change, Result, commit
from office_tasks.reasons import TASK_ASSIGNED


def assign_task(
    engine: Engine,
    mutation_id: str,
    task_id: object,
    assignee_id: object,
    caller_agent_id: object = "",
    instant: dt.datetime | None = None,
) -> Result:
    """Change the assignee, then wake it (PRO-3.5); an empty assignee unassigns.

    Raises:
        InvalidInput: an identifier that is none, or an assignee of another workspace.
        Forbidden: the calling agent may not assign.
        NotFound: no such task, or no such agent.
    """
    change = partial(
        _reassign,
        mutation_id=mutation_id,
        task_id=validation.identifier("task_id", task_id),
        assignee_id=validation.optional_identifier("assignee_id", assignee_id),
        actor=Actor(validation.optional_identifier("caller_agent_id", caller_agent_id)),
    )
    return commit(engine, mutation_id, change, instant)


def _reassign(
    connection: Connection,
    instant: dt.datetime,
    *,
    mutation_id: str,
    task_id: str,
    assignee_id: str | None,
    actor: Actor,
) -> Change:
    locked, people = board.lock_task(connection, task_id, actor.agent_id, assignee_id)
    require(ASSIGN, actor.agent_id, people.get(actor.agent_id or ""))
    found = board.standing(connection, task_id) if locked else None
    if found is None:
        raise NotFound(f"there is no task {task_id!r}")
    _check_assignee(assignee_id, people, found.workspace_id)
    generation = board.assign(connection, found, assignee_id, seat_id=new_id(), instant=instant)
    return Change(
        kind="assign_task",
        actor=actor,
        task_id=task_id,
        previous_runner_id=found.runner_id,
        generation=generation,
        result=_result(mutation_id, task_id, assignee_id, generation, previous_runner_id=found.runner_id),
        wakes=_assignment_wakes(found, mutation_id, assignee_id, generation, "assign_task", actor.payload()),
        events=[{"task_id": task_id, "type": "task_assignee_changed", "changed": ["assignee"]}],
    )


def _check_assignee(assignee_id: str | None, people: Any, workspace_id: str) -> None:  # noqa: ANN401 - a mapping
    if assignee_id is None:
        return
    if assignee_id not in people:
        raise NotFound(f"there is no agent {assignee_id!r} to assign to")
    if people[assignee_id].workspace_id != workspace_id:
        raise InvalidInput(f"assignee_id: agent {assignee_id!r} is not of workspace {workspace_id!r}")


def _assignment_wakes(
    found: board.Standing,
    mutation_id: str,
    assignee_id: str | None,
    generation: int,
    producer: str,
    actor_fields: dict[str, str],
) -> list[Wake]:
    if assignee_id is None or withheld(found, producer):
        return []
    return [
        wake(
            wake_id=f"{mutation_id}#1",
            agent_profile_id=assignee_id,
            reason=TASK_ASSIGNED,
            payload={"task_id": found.task_id, **actor_fields},
            key=keys.task_assigned(found.task_id, assignee_id, generation),
            generation=generation,
            producer=producer,
            owed=True,
        )
    ]


def _result(
    mutation_id: str, task_id: str, assignee_id: str | None, generation: int, **more: str | None
) -> dict[str, Any]:
    return {
        "mutation_id": mutation_id,
        "task_id": task_id,
        "assignee_id": assignee_id,
        "generation": generation,
        **more,
    }


def create_task(
    engine: Engine,
    mutation_id: str,
    workspace_id: object,
    title: object,
    *,
    task_id: object = "",
    step_id: object = "",
    workflow_id: object = "",
    project_id: object = "",
    parent_id: object = "",
    priority: object = "",
    assignee_id: object = "",
    caller_agent_id: object = "",
    instant: dt.datetime | None = None,
) -> Result:
    """Create a task; with an assignee it owes the event subscriber's wake, under the same key (PRO-3.7).

    Raises:
        InvalidInput: an identifier that is none, an id that is taken, or something of another workspace.
        Forbidden: the calling agent may not assign, and an assignee is given.
        NotFound: no such workspace, project, step, parent or agent.
    """
    named = {"step_id": step_id, "workflow_id": workflow_id, "project_id": project_id, "parent_id": parent_id}
    columns = {
        "id": validation.optional_identifier("task_id", task_id) or str(new_id()),
        "workspace_id": validation.identifier("workspace_id", workspace_id),
        "title": validation.text("title", title),
        "priority": validation.text("priority", priority),
        **{field: validation.optional_identifier(field, value) for field, value in named.items()},
    }
    change = partial(
        _create,
        mutation_id=mutation_id,
        columns=columns,
        assignee_id=validation.optional_identifier("assignee_id", assignee_id),
        actor=Actor(validation.optional_identifier("caller_agent_id", caller_agent_id)),
    )
    return commit(engine, mutation_id, change, instant)


def _create(
    connection: Connection,
    instant: dt.datetime,
    *,
    mutation_id: str,
    columns: dict[str, Any],
    assignee_id: str | None,
    actor: Actor,
) -> Change:
    people = board.people(connection, actor.agent_id, assignee_id)
    if assignee_id:
        require(ASSIGN, actor.agent_id, people.get(actor.agent_id or ""))
    found = _place(connection, columns)
    _check_assignee(assignee_id, people, found.workspace_id)
    generation = 1 if assignee_id else 0
    _insert(connection, columns, assignee_id, generation, instant)
    return Change(
        kind="create_task",
        actor=actor,
        task_id=found.task_id,
        generation=generation,
        result=_result(mutation_id, found.task_id, assignee_id, generation),
        wakes=_assignment_wakes(found, mutation_id, assignee_id, generation, "create_task", {}),
        events=[{"task_id": found.task_id, "type": "task_created", "changed": ["task"]}],
    )


def _insert(
    connection: Connection, columns: dict[str, Any], assignee_id: str | None, generation: int, instant: dt.datetime
) -> None:
    params = {**columns, "assignee_id": assignee_id, "seat_id": new_id(), "generation": generation, "instant": instant}
    try:
        board.create_task(connection, params)
    except Exception as error:
        if violates(error, board.TASK_ID):
            raise InvalidInput(f"task_id: there is a task {columns['id']!r} already") from None
        raise


def _place(connection: Connection, columns: dict[str, Any]) -> board.Standing:
    named = {field: columns[field] for field in ("project_id", "step_id", "parent_id")}
    around = board.surroundings(connection, columns["workspace_id"], **named)
    if not around.workspace:
        raise NotFound(f"there is no workspace {columns['workspace_id']!r}")
    for what in ("project", "step", "parent"):
        if (wanted := named[f"{what}_id"]) and not getattr(around, what):
            raise NotFound(f"there is no {what} {wanted!r} in workspace {columns['workspace_id']!r}")
    # A step says which workflow its task is on; without one the task may be on a workflow all the same.
    columns["workflow_id"] = around.workflow_id or columns["workflow_id"]
    return board.Standing(
        task_id=columns["id"],
        workspace_id=columns["workspace_id"],
        step_id=columns["step_id"],
        project_id=columns["project_id"],
        assignment_generation=0,
        runner_id=None,
        step_found=around.step,
        auto_start=around.auto_start,
        on_office_workflow=columns["workflow_id"] is not None and columns["workflow_id"] == around.office_workflow_id,
    )
