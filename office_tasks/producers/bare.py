"""The wakes that stand alone: the two doors."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from sqlalchemy import Engine

from office_tasks import keys, validation
from office_tasks.admission import ASSIGNMENT_ALLOWANCE, BY_DESIGN, Answer, Keyless, Wake, admit, wake
from office_tasks.errors import POISONED, REFUSALS, Poisoned
from office_tasks.producers.producer import Producer

NO_CALLER_RUN: Final = Keyless("unresolved", "no_caller_run")


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
        producer=Producer.QUEUE_RUN,
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
        producer=Producer.SPAWN_RUN,
    )


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
