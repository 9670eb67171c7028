"""What another system reports: the event-subscriber producer (PRO-3). It changes nothing and wakes the assignee.

An event carries the generation of the assignment that it reports, or none. With it, the wake has the very key of the
wake that the assignment itself owed, so the two converge; without it, the wake has no key (PRO-1.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import structlog
from sqlalchemy import Engine

from db import board
from db.engine import autocommit
from office_tasks import keys, reasons, validation
from office_tasks.admission import Keyless, Wake, wake
from office_tasks.errors import InvalidInput
from office_tasks.producers.eligibility import withheld
from office_tasks.producers.producer import Producer
from office_tasks.prose import shown

log: Final = structlog.stdlib.get_logger("office")

NO_GENERATION: Final = Keyless("unresolved", "event_missing_generation")


@dataclass(frozen=True, slots=True)
class Event:
    """A well-formed event. None is what the event did not supply; a generation of 0 names no assignment (PRO-2.2)."""

    producer: Producer
    task_id: str | None
    assignee_id: str | None
    generation: int | None


def event(producer: Producer, task_id: object, assignee_id: object, assignment_generation: object) -> Event:
    """Return the event, checked.

    Raises:
        InvalidInput: it is malformed.
    """
    return Event(
        producer,
        validation.optional_identifier("task_id", task_id),
        validation.optional_identifier("assignee_id", assignee_id),
        _generation(assignment_generation),
    )


def heard(engine: Engine, wake_id: str, said: Event) -> Wake | str:
    """Return the wake that the event asks for, or why it asks for none.

    Raises:
        InvalidInput: the assignee is an agent of another workspace. One that is no agent is the first gate's to refuse.
    """
    found = _standing(engine, said)
    if found is None:
        return _nobody(said, "unknown_task")
    if said.generation == 0:
        return _nobody(said, "generation_names_no_assignment")
    agent = said.assignee_id
    if agent is None and said.producer is Producer.TASK_CREATED:
        agent = found.runner_id
    if agent is None:
        return _nobody(said, "no_assignee")
    return withheld(found, said.producer) or _wake(wake_id, said, found.task_id, agent)


def _wake(wake_id: str, said: Event, task_id: str, agent: str) -> Wake:
    # Only an assignee that the event itself names goes with the event's generation.
    generation = said.generation if said.assignee_id else None
    return wake(
        wake_id=wake_id,
        agent_profile_id=agent,
        reason=reasons.TASK_ASSIGNED,
        payload={"task_id": task_id},
        key=keys.task_assigned(task_id, agent, generation) if generation else None,
        keyless=NO_GENERATION,
        generation=generation,
        producer=said.producer,
    )


def _generation(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise InvalidInput("assignment_generation: must be a whole number from 0 to 2^63 - 1, or absent")
    return value


def _standing(engine: Engine, said: Event) -> board.Standing | None:
    if said.task_id is None:
        return None
    with autocommit(engine) as connection:
        found = board.standing(connection, said.task_id)
        person = board.people(connection, said.assignee_id).get(said.assignee_id or "") if found else None
    if found and person and person.workspace_id not in (None, found.workspace_id):
        raise InvalidInput(f"assignee_id: agent {shown(person.id)} is not of workspace {shown(found.workspace_id)}")
    return found


def _nobody(said: Event, why: str) -> str:
    log.info("wake_withheld", task_id=said.task_id, producer=said.producer, why=why)
    return why
