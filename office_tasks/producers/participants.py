"""Seats on a task: given, taken away, and claimed from their occupant (SES-1.1, SES-3.2)."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any, Final

from sqlalchemy import Engine

from db import board, seating
from db.slate import slate
from office_tasks import validation
from office_tasks.errors import InvalidInput, NotFound
from office_tasks.ids import new_id
from office_tasks.permissions import APPROVE
from office_tasks.producers.after import Result
from office_tasks.producers.assignments import check_agent, unassign
from office_tasks.producers.lock import locked_with
from office_tasks.producers.mutation import Actor, Change, Event, Transaction, caller, commit
from office_tasks.prose import shown
from office_tasks.termination import PARTICIPANT_REMOVED, SEAT_CLAIMED, Guard

RUNNER: Final = "runner"


def add_participant(
    engine: Engine,
    mutation_id: str,
    task_id: object,
    agent_profile_id: object,
    role: object,
    caller_agent_id: object = "",
    instant: dt.datetime | None = None,
) -> Result:
    """Give an agent a seat on a task, at the step where it stands. One that sits there already stays.

    Raises:
        InvalidInput: no such role, or the runner's, which is assigned; an agent of another workspace; no step.
        NotFound: no such task or agent.
        Forbidden: the calling agent may not approve, or is of another workspace.
    """
    work = partial(_add, role=_seat_role(role), **_asked(task_id, agent_profile_id, caller_agent_id))
    return commit(engine, mutation_id, work, instant)


def remove_participant(
    engine: Engine,
    mutation_id: str,
    task_id: object,
    agent_profile_id: object,
    role: object,
    caller_agent_id: object = "",
    instant: dt.datetime | None = None,
) -> Result:
    """Take a seat away, at the step where the task stands: guarded path 1. The runner's seat too is one.

    The agent need not exist any more (SES-2.4). Taking the runner's seat away is an unassignment in all but its reason.

    Raises:
        InvalidInput: no such role.
        NotFound: no such task, or the agent has no such seat of its own there.
        Forbidden: the calling agent may not approve, or is of another workspace.
    """
    work = partial(_remove, role=validation.seat_role(role), **_asked(task_id, agent_profile_id, caller_agent_id))
    return commit(engine, mutation_id, work, instant)


def claim_seat(
    engine: Engine,
    mutation_id: str,
    task_id: object,
    role: object,
    displaced_agent_id: object,
    claiming_agent_id: object,
    caller_agent_id: object = "",
    instant: dt.datetime | None = None,
) -> Result:
    """Take over another agent's seat: guarded path 2. What was asked of the displaced in that role is withdrawn.

    Raises:
        InvalidInput: no such role, or the runner's, which is assigned; the claimer already sits there, or is of another
            workspace.
        NotFound: no such task or claiming agent, or the displaced has no such seat of its own there.
        Forbidden: the calling agent may not approve, or is of another workspace.
    """
    displaced = validation.identifier("displaced_agent_id", displaced_agent_id)
    claiming = validation.identifier("claiming_agent_id", claiming_agent_id)
    if displaced == claiming:
        raise InvalidInput(f"claiming_agent_id: agent {shown(claiming)} already sits there")
    work = partial(
        _claim,
        task_id=validation.identifier("task_id", task_id),
        role=_seat_role(role),
        displaced=displaced,
        claiming=claiming,
        actor=caller(validation.optional_identifier("caller_agent_id", caller_agent_id)),
    )
    return commit(engine, mutation_id, work, instant)


def _asked(task_id: object, agent_profile_id: object, caller_agent_id: object) -> dict[str, Any]:
    return {
        "task_id": validation.identifier("task_id", task_id),
        "agent_profile_id": validation.identifier("agent_profile_id", agent_profile_id),
        "actor": caller(validation.optional_identifier("caller_agent_id", caller_agent_id)),
    }


def _seat_role(value: object) -> str:
    role = validation.seat_role(value)
    if role == RUNNER:
        raise InvalidInput("role: a task's runner is assigned: use assign_task")
    return role


def _add(tx: Transaction, *, task_id: str, agent_profile_id: str, role: str, actor: Actor) -> Change:
    found, people = locked_with(tx, task_id, actor, agent_profile_id, permission=APPROVE)
    check_agent("agent_profile_id", agent_profile_id, people, found.workspace_id)
    if found.step_id is None:
        raise InvalidInput(f"task_id: task {shown(task_id)} stands on no step, where alone there are seats")
    seat = _seat(found, role, agent_profile_id)
    added = seating.sit(tx.connection, seat, new_id(), tx.instant)
    return _changed("add_participant", tx, actor, seat, added=added)


def _remove(tx: Transaction, *, task_id: str, agent_profile_id: str, role: str, actor: Actor) -> Change:
    found, _ = locked_with(tx, task_id, actor, permission=APPROVE)
    guard = Guard(task_id, agent_profile_id, PARTICIPANT_REMOVED)
    seat = _seat(found, role, agent_profile_id)
    if role == RUNNER:
        return unassign(tx, found, actor, guard)
    _stand(tx, seat)
    return _changed("remove_participant", tx, actor, seat, guard, removed=True)


def _claim(tx: Transaction, *, task_id: str, role: str, displaced: str, claiming: str, actor: Actor) -> Change:
    found, people = locked_with(tx, task_id, actor, claiming, permission=APPROVE)
    check_agent("claiming_agent_id", claiming, people, found.workspace_id)
    left = _seat(found, role, displaced)
    _stand(tx, left)
    if any((seat.role, seat.agent_profile_id) == (role, claiming) for seat in slate(tx.connection, task_id)):
        raise InvalidInput(f"claiming_agent_id: agent {shown(claiming)} already sits there as {role}")
    taken = {**left, "agent_profile_id": claiming}
    seating.sit(tx.connection, taken, new_id(), tx.instant)
    withdrawn = seating.withdraw_reviews(tx.connection, left, SEAT_CLAIMED, tx.instant)
    guard = Guard(task_id, displaced, SEAT_CLAIMED)
    return _changed("claim_seat", tx, actor, taken, guard, displaced_agent_id=displaced, withdrawn=withdrawn)


def _stand(tx: Transaction, seat: dict[str, Any]) -> None:
    if not seating.stand(tx.connection, seat):
        who, role, task = seat["agent_profile_id"], seat["role"], seat["task_id"]
        raise NotFound(f"agent {shown(who)} has no {role} seat of its own on task {shown(task)} where that stands now")


def _seat(found: board.Standing, role: str, agent_profile_id: str) -> dict[str, Any]:
    return {"task_id": found.task_id, "step_id": found.step_id, "role": role, "agent_profile_id": agent_profile_id}


def _changed(
    kind: str, tx: Transaction, actor: Actor, seat: dict[str, Any], guard: Guard | None = None, **more: object
) -> Change:
    return Change(
        kind=kind,
        actor=actor,
        task_id=seat["task_id"],
        result={"mutation_id": tx.mutation_id, **seat, **more},
        events=[Event(seat["task_id"], "task_participants_changed", ["participants"])],
        guard=guard,
    )
