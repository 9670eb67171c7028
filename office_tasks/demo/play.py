"""Ask for one case after the other, and read back what came of each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from celery.exceptions import TimeoutError as NoAnswer
from celery.result import AsyncResult
from sqlalchemy import Engine

import office_tasks
from db import clock
from db.engine import autocommit
from office_tasks.admission import ASSIGNMENT_ALLOWANCE, Answer, recall
from office_tasks.demo.cases import WORKSPACE_PAUSE, Case
from office_tasks.errors import OfficeError, PauseGateUnavailable, WorkspacePaused
from office_tasks.ids import new_id
from office_tasks.producers import assignments, bare, creation

ANSWER_SECONDS: Final = 30

_IN_THE_PAST: Final[Mapping[str, Callable[..., dict[str, Any]]]] = {
    "queue_run": lambda engine, wake_id, instant, **asked: bare.enqueue(
        engine, bare.queue_run(wake_id, **asked), instant=instant
    ),
    "assign_task": assignments.assign_task,
    "create_task": creation.create_task,
}


class DemoError(OfficeError):
    """The demo cannot go on; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Played:
    """A case and what came of it."""

    case: Case
    happened: str
    gate: str | None
    why: str

    @property
    def surprise(self) -> str | None:
        """What differs from the contract, or None."""
        case = self.case
        if (self.happened, self.gate) == (case.happened, case.gate):
            return None
        expected, got = (
            f"{what} (gate: {gate})" for what, gate in ((case.happened, case.gate), (self.happened, self.gate))
        )
        return f"{case.asked}: expected {expected}, got {got}"


def play(engine: Engine, cases: Sequence[Case], say: Callable[[str], None]) -> Iterator[Played]:
    """Yield what came of each case, in order.

    Raises:
        DemoError: the worker gave no answer in time.
    """
    early = {case.asked: _send(case) for case in cases if case.slow}
    for case in cases:
        say(case.asked)
        if case.ago is not None:
            yield _read(engine, case, _ask_in_the_past(engine, case), "")
            continue
        sent = early.get(case.asked) or _send(case)
        yield _read(engine, case, _answer(case, sent), str(sent.id))


def _send(case: Case) -> AsyncResult:
    sent: AsyncResult = getattr(office_tasks, case.task).delay(**case.arguments)
    return sent


def _answer(case: Case, sent: AsyncResult) -> dict[str, Any] | OfficeError:
    try:
        answer: dict[str, Any] = sent.get(timeout=ANSWER_SECONDS)
    except OfficeError as error:
        return error
    except NoAnswer:
        raise DemoError(f"the worker did not answer within {ANSWER_SECONDS} s when asked: {case.asked}") from None
    return answer


def _ask_in_the_past(engine: Engine, case: Case) -> dict[str, Any]:
    with autocommit(engine) as connection:
        instant = clock.now(connection) - (case.ago or dt.timedelta())
    return _IN_THE_PAST[case.task](engine, str(new_id()), instant=instant, **case.arguments)


def _read(engine: Engine, case: Case, answer: dict[str, Any] | OfficeError, message_id: str) -> Played:
    """Put the answer beside the wake's row: what was answered must be what stands there."""
    happened, wake_id = _said(answer, message_id)
    row = recall(engine, wake_id) if wake_id else None
    if isinstance(answer, dict) and row and happened not in (row.outcome, row.state):
        happened = f"{happened}, but its row says {row.state} {row.outcome}"
    why = case.why.format(
        said=answer if isinstance(answer, OfficeError) else "",
        observed=row.observed if row else None,
        allowance=ASSIGNMENT_ALLOWANCE,
        replayed=_replayed(answer),
    )
    return Played(case, happened, _gate(answer, row), why)


def _replayed(answer: dict[str, Any] | OfficeError) -> str:
    counts = answer.get("replayed", {}) if isinstance(answer, dict) else {}
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))


def _said(answer: dict[str, Any] | OfficeError, message_id: str) -> tuple[str, str | None]:
    """Return what happened, in one word, and the id of the wake that it happened to."""
    if isinstance(answer, OfficeError):
        return type(answer).__name__, message_id
    if "paused" in answer:
        return "paused" if answer["paused"] else "resumed", None
    if "wakes" not in answer:
        return answer["outcome"], answer["wake_id"]
    if not answer["wakes"]:
        return "no wake", None
    (wake,) = answer["wakes"]
    return "owed" if wake["state"] == "owed" else wake["outcome"], wake["wake_id"]


def _gate(answer: dict[str, Any] | OfficeError, row: Answer | None) -> str | None:
    """Return the gate on the wake's row; of a wake still owed, the one that holds it up."""
    if row is None or row.state != "owed":
        return row.gate if row else None
    held_up = {wake["refusal"] for wake in answer["wakes"]} if isinstance(answer, dict) else set()
    return WORKSPACE_PAUSE if held_up & {WorkspacePaused.refusal, PauseGateUnavailable.refusal} else None
