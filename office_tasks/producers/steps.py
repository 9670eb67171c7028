"""Moving a task to a step; one that auto-starts wakes whoever drives the task there (PRO-3)."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Final

from sqlalchemy import Engine

from db import board
from office_tasks import keys, reasons, validation
from office_tasks.admission import Keyless
from office_tasks.errors import InvalidInput, NotFound
from office_tasks.ids import new_id
from office_tasks.producers.after import Result
from office_tasks.producers.eligibility import withheld
from office_tasks.producers.lock import locked
from office_tasks.producers.mutation import THE_USER, Change, Event, Transaction, commit
from office_tasks.producers.producer import Producer
from office_tasks.producers.reactions import Ask, owe
from office_tasks.prose import shown

ZERO_TRANSITION: Final = Keyless("unresolved", "zero_step_transition")


def enter_step(
    engine: Engine,
    mutation_id: str,
    task_id: object,
    step_id: object,
    step_transition_id: object,
    instant: dt.datetime | None = None,
) -> Result:
    """Move a task to a step of its workspace; no assignment, so the generation stays (PRO-2.3).

    A transition that is absent, empty or zero is none: the wake it causes has no key.

    Raises:
        InvalidInput: an identifier that is none, or the transition of another move.
        NotFound: no such task, or no such step in its workspace.
    """
    work = partial(
        _enter,
        task_id=validation.identifier("task_id", task_id),
        step_id=validation.identifier("step_id", step_id),
        transition_id=_transition(step_transition_id),
    )
    return commit(engine, mutation_id, work, instant)


def _transition(value: object) -> str | None:
    if isinstance(value, bool) or (value is not None and not isinstance(value, str | int)):
        raise InvalidInput(f"step_transition_id: must be text or a whole number, not {type(value).__name__}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidInput("step_transition_id: must be text or a whole number of at most 64 bits")
    found = validation.optional_identifier("step_transition_id", "" if value is None else str(value))
    return None if found == "0" else found


def _enter(tx: Transaction, *, task_id: str, step_id: str, transition_id: str | None) -> Change:
    before = locked(tx, task_id)
    if not board.has_step(tx.connection, task_id, step_id):
        raise NotFound(f"there is no step {shown(step_id)} in workspace {shown(before.workspace_id)}")
    moved = _move(tx, task_id, step_id, transition_id or str(new_id()))
    after = board.standing(tx.connection, task_id) if moved else None
    asks = _asks(after, transition_id) if after else []
    return Change(
        kind="enter_step",
        actor=THE_USER,
        task_id=task_id,
        result={
            "mutation_id": tx.mutation_id,
            "task_id": task_id,
            "step_id": step_id,
            "was": before.step_id,
            "moved": moved,
        },
        wakes=owe(tx.mutation_id, Producer.ENTER_STEP, asks),
        events=[Event(task_id, "task_step_changed", ["step"])] if moved else [],
    )


def _move(tx: Transaction, task_id: str, step_id: str, transition_id: str) -> bool:
    """Tell whether the task was moved now; False when that very transition moved it before."""
    moved = board.enter_step(tx.connection, task_id, step_id, transition_id, tx.instant)
    if not moved and not board.is_recorded(tx.connection, task_id, step_id, transition_id):
        raise InvalidInput(f"step_transition_id: {shown(transition_id)} is another move")
    return moved


def _asks(task: board.Standing, transition_id: str | None) -> list[Ask]:
    if task.runner_id is None or withheld(task, Producer.ENTER_STEP):
        return []
    key = transition_id and keys.task_auto_started(task.task_id, task.runner_id, task.step_id or "", transition_id)
    return [Ask(task.runner_id, reasons.TASK_ASSIGNED, {"task_id": task.task_id}, key, ZERO_TRANSITION)]
