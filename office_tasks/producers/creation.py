"""Creating a task: plainly, or to bring an agent on board (PRO-3, PRO-3.7)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError

from db import board
from db.errors import violates
from office_tasks import keys, reasons, validation
from office_tasks.admission import Keyless
from office_tasks.errors import InvalidInput, NotFound
from office_tasks.ids import new_id
from office_tasks.permissions import ASSIGN, belongs, require
from office_tasks.producers.after import Result
from office_tasks.producers.assignments import check_agent
from office_tasks.producers.eligibility import withheld
from office_tasks.producers.mutation import THE_USER, Actor, Change, Event, Transaction, caller, commit
from office_tasks.producers.producer import Producer
from office_tasks.producers.reactions import Ask, owe
from office_tasks.prose import shown

ONBOARDING: Final = Keyless("unresolved", "onboarding_no_generation")
# What a creation may name, besides its workspace.
PLACES: Final = ("step_id", "workflow_id", "project_id", "parent_id")


def create_task(
    engine: Engine,
    mutation_id: str,
    workspace_id: object,
    title: object,
    *,
    task_id: object = "",
    priority: object = "",
    assignee_id: object = "",
    caller_agent_id: object = "",
    instant: dt.datetime | None = None,
    **places: object,
) -> Result:
    """Create a task; with an assignee it owes the event subscriber's wake, under the same key (PRO-3.7).

    Args:
        engine: where to.
        mutation_id: the Celery task id.
        workspace_id: whose board.
        title: text.
        task_id: the caller's own id for it; empty for a new one.
        priority: text.
        assignee_id: who is to drive it; empty for nobody.
        caller_agent_id: the agent that asks; empty for the user.
        instant: for replay and tests.
        places: `step_id`, `workflow_id`, `project_id`, `parent_id`.

    Raises:
        InvalidInput: an identifier that is none, an id that is taken, or something of another workspace.
        Forbidden: the calling agent may not assign, and an assignee is given.
        NotFound: no such workspace, project, step, parent or agent.
    """
    work = partial(
        _create,
        columns=_columns(workspace_id, title, task_id, priority, places),
        assignee_id=validation.optional_identifier("assignee_id", assignee_id),
        actor=caller(validation.optional_identifier("caller_agent_id", caller_agent_id)),
    )
    return commit(engine, mutation_id, work, instant)


def onboard_task(
    engine: Engine,
    mutation_id: str,
    workspace_id: object,
    agent_profile_id: object,
    title: object,
    instant: dt.datetime | None = None,
) -> Result:
    """Create a task on the office workflow, without a step, and wake its agent: as a creation does, and keyless.

    Raises:
        InvalidInput: an identifier that is none, or an agent of another workspace.
        NotFound: no such workspace or agent.
    """
    work = partial(
        _onboard,
        columns=_columns(workspace_id, title, "", "", {}),
        agent_profile_id=validation.identifier("agent_profile_id", agent_profile_id),
    )
    return commit(engine, mutation_id, work, instant)


def _columns(
    workspace_id: object, title: object, task_id: object, priority: object, places: Mapping[str, object]
) -> dict[str, Any]:
    return {
        "id": validation.optional_identifier("task_id", task_id) or str(new_id()),
        "workspace_id": validation.identifier("workspace_id", workspace_id),
        "title": validation.text("title", title, limit=validation.MAX_TITLE_BYTES),
        "priority": validation.text("priority", priority, limit=validation.MAX_IDENTIFIER_BYTES),
        **{place: validation.optional_identifier(place, places.get(place)) for place in PLACES},
    }


def _create(tx: Transaction, *, columns: Mapping[str, Any], assignee_id: str | None, actor: Actor) -> Change:
    people = board.people(tx.connection, actor.agent_id, assignee_id)
    caller = people.get(actor.agent_id or "")
    if assignee_id:
        require(ASSIGN, actor.agent_id, caller)
    around = _surroundings(tx, columns)
    belongs(actor.agent_id, caller, columns["workspace_id"])
    check_agent("assignee_id", assignee_id, people, columns["workspace_id"])
    return _insert(tx, Producer.CREATE_TASK, columns, around, assignee_id, actor)


def _onboard(tx: Transaction, *, columns: Mapping[str, Any], agent_profile_id: str) -> Change:
    around = _surroundings(tx, columns)
    people = board.people(tx.connection, agent_profile_id)
    check_agent("agent_profile_id", agent_profile_id, people, columns["workspace_id"])
    on_workflow = {**columns, "workflow_id": around.office_workflow_id}
    change = _insert(tx, Producer.ONBOARD_TASK, on_workflow, around, agent_profile_id, THE_USER)
    return replace(change, kind="onboard_task")


def _insert(
    tx: Transaction,
    producer: Producer,
    columns: Mapping[str, Any],
    around: board.Surroundings,
    assignee_id: str | None,
    actor: Actor,
) -> Change:
    generation = 1 if assignee_id else 0
    _write(tx, columns, around, assignee_id, generation)
    task = _standing(columns, around, assignee_id, generation)
    asks = [] if assignee_id is None or withheld(task, producer) else _asks(producer, task, assignee_id, generation)
    return Change(
        kind="create_task",
        actor=actor,
        task_id=task.task_id,
        generation=generation,
        result={
            "mutation_id": tx.mutation_id,
            "task_id": task.task_id,
            "assignee_id": assignee_id,
            "generation": generation,
        },
        wakes=owe(tx.mutation_id, producer, asks),
        events=[Event(task.task_id, "task_created", ["task"])],
    )


def _asks(producer: Producer, task: board.Standing, assignee_id: str, generation: int) -> list[Ask]:
    payload = {"task_id": task.task_id}
    key = keys.task_assigned(task.task_id, assignee_id, generation)
    of_the_creation = Ask(assignee_id, reasons.TASK_ASSIGNED, payload, key, generation=generation)
    if producer is not Producer.ONBOARD_TASK:
        return [of_the_creation]
    return [of_the_creation, Ask(assignee_id, reasons.TASK_ASSIGNED, payload, keyless=ONBOARDING)]


def _write(
    tx: Transaction, columns: Mapping[str, Any], around: board.Surroundings, assignee_id: str | None, generation: int
) -> None:
    params = {
        **columns,
        # A step says which workflow its task is on; without one the task may be on a workflow all the same.
        "workflow_id": around.workflow_id or columns["workflow_id"],
        "assignee_id": assignee_id,
        "seat_id": new_id(),
        "generation": generation,
        "instant": tx.instant,
    }
    try:
        board.create_task(tx.connection, params)
    except IntegrityError as error:
        if violates(error, board.TASK_ID):
            raise InvalidInput(f"task_id: there is a task {shown(columns['id'])} already") from None
        raise


def _surroundings(tx: Transaction, columns: Mapping[str, Any]) -> board.Surroundings:
    named = {field: columns[field] for field in ("project_id", "step_id", "parent_id")}
    around = board.surroundings(tx.connection, columns["workspace_id"], **named)
    if not around.workspace:
        raise NotFound(f"there is no workspace {shown(columns['workspace_id'])}")
    for what in ("project", "step", "parent"):
        if (wanted := named[f"{what}_id"]) and not getattr(around, what):
            raise NotFound(f"there is no {what} {shown(wanted)} in workspace {shown(columns['workspace_id'])}")
    return around


def _standing(
    columns: Mapping[str, Any], around: board.Surroundings, assignee_id: str | None, generation: int
) -> board.Standing:
    workflow_id = around.workflow_id or columns["workflow_id"]
    return board.Standing(
        task_id=columns["id"],
        workspace_id=columns["workspace_id"],
        step_id=columns["step_id"],
        status="todo",
        assignment_generation=generation,
        runner_id=assignee_id,
        is_office=bool(columns["project_id"]) or (workflow_id is not None and workflow_id == around.office_workflow_id),
        step_found=around.step,
        auto_start=around.auto_start,
    )
