"""The wakes that stand alone: the two doors, and what an event from another system asks for."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import structlog
from sqlalchemy import Engine

from db import board
from db.engine import autocommit
from office_tasks import keys, validation
from office_tasks.admission import ASSIGNMENT_ALLOWANCE, BY_DESIGN, Answer, Keyless, Wake, admit, wake
from office_tasks.errors import POISONED, REFUSALS, InvalidInput, Poisoned
from office_tasks.producers.eligibility import withheld
from office_tasks.reasons import TASK_ASSIGNED

log: Final = structlog.stdlib.get_logger("office")

NO_CALLER_RUN: Final = Keyless("unresolved", "no_caller_run")
EVENT_MISSING_GENERATION: Final = Keyless("unresolved", "event_missing_generation")


def enqueue(
    engine: Engine, wake: Wake, *, instant: dt.datetime | None = None, last_attempt: bool = True
) -> dict[str, Any]:
    """Admit a bare wake and return the flat result of ADM-7.2.

    Raises:
        Refused: gate 1 or 2 declined it (ADM-7.3).
        Poisoned: its message was given up on before.
    """
    return answered(admit(engine, wake, instant=instant, last_attempt=last_attempt))


def answered(answer: Answer) -> dict[str, Any]:
    """Return a bare wake's result, or raise the error that its row holds."""
    if answer.refusal == POISONED:
        raise Poisoned(answer.message or POISONED)
    if answer.refusal:
        raise REFUSALS[answer.refusal](answer.message or answer.refusal)
    return dict(answer.result(ASSIGNMENT_ALLOWANCE))


def queue_run(
    wake_id: str, agent_profile_id: object, reason: object, payload: object = None, idempotency_key: object = None
) -> Wake:
    """Return the wake of the door for trusted code: its key is stored as given."""
    return wake(
        wake_id=wake_id,
        agent_profile_id=agent_profile_id,
        reason=reason,
        payload=payload,
        key=validation.given_key(idempotency_key),
        producer="queue_run",
    )


def spawn_run(
    wake_id: str,
    calling_run_id: object,
    agent_profile_id: object,
    reason: object,
    payload: object = None,
    key: object = "",
) -> Wake:
    """Return the wake of the door for agents: its key is the calling run's own (PRO-1.6)."""
    caller = validation.optional_identifier("calling_run_id", calling_run_id)
    given = validation.given_key(key)
    return wake(
        wake_id=wake_id,
        agent_profile_id=agent_profile_id,
        reason=reason,
        payload=payload,
        key=keys.spawned(caller, given) if caller and given else None,
        keyless=BY_DESIGN if caller else NO_CALLER_RUN,
        producer="spawn_run",
    )


def task_created(
    engine: Engine, wake_id: str, task_id: object, assignee_id: object = None, assignment_generation: object = None
) -> Wake | str:
    """Return the wake that another system's `task_created` asks for, or why it asks for none (PRO-3).

    Raises:
        InvalidInput: the event is malformed.
    """
    assignee = validation.optional_identifier("assignee_id", assignee_id)
    generation = _generation(assignment_generation)
    task = validation.optional_identifier("task_id", task_id)
    found = _standing(engine, task) if task else None
    if found is None:
        return _nobody("unknown_task", task)
    if generation == 0:
        return _nobody("generation_names_no_assignment", task)
    if (agent := assignee or found.runner_id) is None:
        return _nobody("no_runner", task)
    if why := withheld(found, "task_created"):
        return why
    keyed = assignee is not None and generation is not None
    return wake(
        wake_id=wake_id,
        agent_profile_id=agent,
        reason=TASK_ASSIGNED,
        payload={"task_id": found.task_id},
        key=keys.task_assigned(found.task_id, agent, generation) if keyed and generation else None,
        keyless=EVENT_MISSING_GENERATION,
        generation=generation if keyed else None,
        producer="task_created",
    )


def _generation(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise InvalidInput("assignment_generation: must be a whole number from 0, or absent")
    return value


def _standing(engine: Engine, task_id: str) -> board.Standing | None:
    with autocommit(engine) as connection:
        return board.standing(connection, task_id)


def _nobody(why: str, task_id: str | None) -> str:
    log.info("wake_withheld", task_id=task_id, producer="task_created", why=why)
    return why


def nobody_woken(reason: str, why: str) -> dict[str, Any]:
    """Return the flat result of an event that asked for no wake."""
    return {
        "outcome": "none",
        "reason": reason,
        "run_id": None,
        "wake_id": None,
        "key": None,
        "observed": None,
        "allowance": None,
        "withheld": why,
    }
