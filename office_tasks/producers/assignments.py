"""Changing who drives a task (PRO-3.5)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import partial

from sqlalchemy import Engine

from db import assigning, board
from office_tasks import validation
from office_tasks.errors import InvalidInput, NotFound
from office_tasks.ids import new_id
from office_tasks.permissions import ASSIGN
from office_tasks.producers.after import Interrupt, Result
from office_tasks.producers.lock import locked_with
from office_tasks.producers.mutation import Actor, Change, Event, Transaction, Work, caller, commit
from office_tasks.producers.producer import Producer
from office_tasks.producers.reactions import Assignment, Changed, react
from office_tasks.prose import shown
from office_tasks.termination import REASSIGNED, Guard


def assign_task(
    engine: Engine,
    mutation_id: str,
    task_id: object,
    assignee_id: object,
    caller_agent_id: object = "",
    instant: dt.datetime | None = None,
) -> Result:
    """Change the assignee, then wake it; an empty assignee unassigns.

    Raises:
        InvalidInput: an identifier that is none, or an assignee of another workspace.
        Forbidden: the calling agent may not assign.
        NotFound: no such task, or no such agent.
    """
    return commit(engine, mutation_id, assignment(task_id, assignee_id, caller_agent_id), instant)


def assignment(task_id: object, assignee_id: object, caller_agent_id: object = "") -> Work:
    """Return the work of one assignment, its input checked.

    Raises:
        InvalidInput: an identifier that is none.
    """
    return partial(
        _assign,
        task_id=validation.identifier("task_id", task_id),
        assignee_id=validation.optional_identifier("assignee_id", assignee_id),
        actor=caller(validation.optional_identifier("caller_agent_id", caller_agent_id)),
    )


def check_agent(
    field: str, agent_profile_id: str | None, people: Mapping[str, board.Person], workspace_id: str
) -> None:
    """Let whomever `field` names pass when it is an agent of the task's workspace; nobody passes always.

    Raises:
        NotFound: no such agent.
        InvalidInput: an agent of another workspace.
    """
    if agent_profile_id is None:
        return
    if agent_profile_id not in people:
        raise NotFound(f"{field}: there is no agent {shown(agent_profile_id)}")
    if people[agent_profile_id].workspace_id != workspace_id:
        raise InvalidInput(f"{field}: agent {shown(agent_profile_id)} is not of workspace {shown(workspace_id)}")


def unassign(tx: Transaction, found: board.Standing, actor: Actor, guard: Guard) -> Change:
    """Take the runner's seat away from the agent of `guard`, on a task that is locked.

    Raises:
        NotFound: it is not the agent that sits there.
    """
    if not assigning.has_runner_seat(tx.connection, found, guard.agent_profile_id):
        raise NotFound(f"agent {shown(guard.agent_profile_id)} has no runner seat on task {shown(found.task_id)}")
    return _change(tx, found, None, actor, guard)


def _assign(tx: Transaction, *, task_id: str, assignee_id: str | None, actor: Actor) -> Change:
    found, people = locked_with(tx, task_id, actor, assignee_id, permission=ASSIGN)
    check_agent("assignee_id", assignee_id, people, found.workspace_id)
    previous = found.runner_id
    # A repeat to the same agent displaces nobody.
    displaced = Guard(task_id, previous, REASSIGNED) if previous and previous != assignee_id else None
    return _change(tx, found, assignee_id, actor, displaced)


def _change(
    tx: Transaction, found: board.Standing, assignee_id: str | None, actor: Actor, displaced: Guard | None
) -> Change:
    task_id, previous = found.task_id, found.runner_id
    generation, retries = assigning.assign(tx.connection, found, assignee_id, seat_id=new_id(), instant=tx.instant)
    made = Assignment(assignee_id, generation, actor.payload())
    return Change(
        kind="assign_task",
        actor=actor,
        task_id=task_id,
        previous_runner_id=previous,
        generation=generation,
        result={
            "mutation_id": tx.mutation_id,
            "task_id": task_id,
            "assignee_id": assignee_id,
            "previous_runner_id": previous,
            "generation": generation,
            "cancelled_retries": retries,
        },
        wakes=react(tx.connection, Changed(Producer.ASSIGN_TASK, found, assignment=made), tx.mutation_id),
        events=[Event(task_id, "task_assignee_changed", ["assignee"])],
        interrupt=Interrupt(task_id, displaced.agent_profile_id) if displaced else None,
        guard=displaced,
    )
