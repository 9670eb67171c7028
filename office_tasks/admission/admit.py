"""The seam: one wake walks the six gates, and what the deciding one says is written with its effect, as one."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from db.decide import Kind, admit_if_clear, record, recorded
from db.engine import autocommit
from db.errors import brief, is_connection_lost, violates
from db.facts import Facts, read
from db.models.wakes import WAKE_ID
from office_tasks.admission.decision import Answer, Decision, Outcome, from_row
from office_tasks.admission.gates import GATES, Gate, WhenUnread
from office_tasks.admission.listeners import tell_queued
from office_tasks.admission.report import report
from office_tasks.admission.wake import Wake
from office_tasks.admission.windows import (
    ALLOWANCE_WINDOW,
    ASSIGNMENT_ALLOWANCE,
    COALESCE_WINDOW,
    DUPLICATE_LOOKBACK,
)
from office_tasks.errors import POISONED, NotFound, PauseGateUnavailable, WorkspacePaused
from office_tasks.faults import fault_point
from office_tasks.ids import new_id
from office_tasks.prose import shown

# What an owed wake waits out, instead of being closed by it (PRO-6.4).
_PASSING = frozenset({WorkspacePaused.refusal, PauseGateUnavailable.refusal})

_QUEUED = Decision(Outcome.QUEUED, "insert")


class _ReadAgain(Exception):
    """The reads failed as one statement, or the count lost its connection: repeat them gate by gate."""


@dataclass(slots=True)
class Attempt:
    """One walk of one wake through the gates, at one instant."""

    connection: Connection
    wake: Wake
    facts: Facts
    last: bool
    step_by_step: bool = False
    unread: dict[str, str] = field(default_factory=dict)


def admit(engine: Engine, wake: Wake, *, instant: dt.datetime | None = None, last_attempt: bool = True) -> Answer:
    """Decide a wake, or return what was decided on it before.

    Args:
        engine: admission takes a connection of its own from it, never the caller's (ADM-2.5).
        wake: what is asked.
        instant: the evaluation instant, for tests and replay; None reads it from Postgres (ADM-2.3).
        last_attempt: nobody will ask again, so a pause that cannot be read is recorded as the refusal it is.

    Returns:
        The answer on the wake's row. A refusal is an answer too: `refusal` and `message` are set.

    Raises:
        DBAPIError: a read of gate 1, 3 or 4, or the deciding statement, failed; nothing was written (ADM-2).
    """
    fault_point("before_deciding")
    try:
        attempt, answer = _all_at_once(engine, wake, instant, last_attempt)
    except _ReadAgain:
        attempt, answer = _gate_by_gate(engine, wake, instant, last_attempt)
    fault_point("after_deciding")
    if answer.fresh:
        report(wake, answer, attempt.facts, attempt.unread)
        if answer.outcome is Outcome.QUEUED:
            tell_queued()
    return answer


def recall(engine: Engine, wake_id: str) -> Answer | None:
    """Return what stands on a wake's row, or None when there is no such wake."""
    with autocommit(engine) as connection:
        row = recorded(connection, wake_id)
    return None if row is None else from_row(wake_id, row)


def poison(engine: Engine, wake: Wake) -> Answer:
    """Close a wake whose message keeps killing its worker (ADM-10.5)."""
    with autocommit(engine) as connection:
        facts = read(connection, ("wake_state",), _params(wake, None))
        attempt = Attempt(connection, wake, facts, last=True)
        given_up = Decision(Outcome.NONE, refusal=POISONED, message="its message was delivered too often")
        answer = _decide(attempt, None, given_up) or _standing_answer(connection, wake)
    if answer.fresh:
        report(wake, answer, facts, {})
    return answer


def _all_at_once(engine: Engine, wake: Wake, instant: dt.datetime | None, last: bool) -> tuple[Attempt, Answer]:
    """Admit a wake that no gate stops in one round trip; one that some gate stops takes a second, to record it."""
    with autocommit(engine) as connection:
        try:
            facts, run_id = admit_if_clear(
                connection, _kind(wake), (*_questions(wake), "wake_state"), _clear_params(wake, instant)
            )
        except DBAPIError as error:
            if violates(error, WAKE_ID):
                return _overtaken(connection, wake, instant)
            raise _ReadAgain from error
        attempt = Attempt(connection, wake, facts, last)
        if run_id is None:
            return attempt, _walk(attempt)
        queued = replace(_QUEUED, run_id=run_id, observed=facts.assignments)
        return attempt, _answer(wake, GATES[-1], queued, state="decided", fresh=True)


def _overtaken(connection: Connection, wake: Wake, instant: dt.datetime | None) -> tuple[Attempt, Answer]:
    facts = read(connection, ("wake_state",), _params(wake, instant))
    return Attempt(connection, wake, facts, last=True), _standing_answer(connection, wake)


def _gate_by_gate(engine: Engine, wake: Wake, instant: dt.datetime | None, last: bool) -> tuple[Attempt, Answer]:
    unread: dict[str, str] = {}
    try:
        return _steps(engine, wake, instant, last, unread)
    except _ReadAgain:
        return _steps(engine, wake, instant, last, unread)


def _steps(
    engine: Engine, wake: Wake, instant: dt.datetime | None, last: bool, unread: dict[str, str]
) -> tuple[Attempt, Answer]:
    with autocommit(engine) as connection:
        facts = read(connection, ("wake_state",), _params(wake, instant))
        attempt = Attempt(connection, wake, facts, last, step_by_step=True, unread=unread)
        return attempt, _walk(attempt)


def _walk(attempt: Attempt) -> Answer:
    if attempt.facts.wake_state not in (None, "owed"):
        return _standing_answer(attempt.connection, attempt.wake)
    for gate in GATES:
        if attempt.step_by_step:
            _look(attempt, gate)
        decision = gate.decide(attempt.wake, attempt.facts)
        if decision and (answer := _decide(attempt, gate, decision)):
            return answer
    return _refused_by_the_index(attempt) or _standing_answer(attempt.connection, attempt.wake)


def _look(attempt: Attempt, gate: Gate) -> None:
    """Read what one gate needs, at the attempt's instant; a failure takes the gate's own direction (ADM-2.2)."""
    if gate.reads not in _questions(attempt.wake) or gate.reads in attempt.unread:
        return
    try:
        seen = read(attempt.connection, (gate.reads,), _params(attempt.wake, attempt.facts.instant))
    except DBAPIError as error:
        _fail(attempt, gate.reads, gate.when_unread, error)
    else:
        attempt.facts = attempt.facts._replace(**{gate.reads: getattr(seen, gate.reads)})


def _fail(attempt: Attempt, question: str, direction: WhenUnread, error: DBAPIError) -> None:
    lost = is_connection_lost(error)
    if direction is WhenUnread.ERROR or (lost and direction is WhenUnread.CLOSED):
        raise error
    attempt.unread[question] = brief(error)
    if lost:
        raise _ReadAgain from error


def _decide(attempt: Attempt, gate: Gate | None, decision: Decision) -> Answer | None:
    """Write the decision; None when its effect did not happen and the walk must go on."""
    wake = attempt.wake
    if decision.refusal == PauseGateUnavailable.refusal:
        _name_the_workspace(attempt)
    if decision.refusal in _PASSING and (wake.owed or _may_be_asked_again(attempt, decision)):
        return _answer(wake, gate, decision, state="owed")
    try:
        done = record(
            attempt.connection,
            _kind(wake),
            decision.effect,
            {**wake.columns(), **_decision_columns(gate, decision), "instant": attempt.facts.instant},
        )
    except DBAPIError as error:
        if violates(error, WAKE_ID):
            return _standing_answer(attempt.connection, wake)
        raise
    return done and _answer(wake, gate, replace(decision, run_id=done[0]), state="decided", fresh=True)


def _name_the_workspace(attempt: Attempt) -> None:
    """Learn which workspace could not be read, for the warning; that too may be unreadable."""
    with suppress(DBAPIError):
        seen = read(attempt.connection, ("workspace_id",), _params(attempt.wake, attempt.facts.instant))
        attempt.facts = attempt.facts._replace(workspace_id=seen.workspace_id)


def _may_be_asked_again(attempt: Attempt, decision: Decision) -> bool:
    return decision.refusal == PauseGateUnavailable.refusal and not attempt.last


def _refused_by_the_index(attempt: Attempt) -> Answer | None:
    """Answer a wake that gate 6 could not insert: the unique index holds its key (ADM-6.1)."""
    if attempt.wake.key is None:
        return None
    return _decide(attempt, GATES[-1], Decision(Outcome.DEDUPED, "find"))


def _standing_answer(connection: Connection, wake: Wake) -> Answer:
    row = recorded(connection, wake.id)
    if row is None:
        raise NotFound(f"there is no wake {shown(wake.id)}")
    return from_row(wake.id, row)


def _answer(wake: Wake, gate: Gate | None, decision: Decision, *, state: str, fresh: bool = False) -> Answer:
    return Answer(
        wake_id=wake.id,
        agent_profile_id=wake.agent_profile_id,
        reason=wake.reason,
        key=wake.key,
        state=state,
        outcome=decision.outcome,
        gate=gate.decide.__name__ if gate else None,
        run_id=decision.run_id,
        observed=decision.observed,
        refusal=decision.refusal,
        message=decision.message,
        fresh=fresh,
    )


def _decision_columns(gate: Gate | None, decision: Decision) -> dict[str, Any]:
    return {
        "outcome": decision.outcome.value,
        "gate": gate.decide.__name__ if gate else None,
        "run_id": new_id() if decision.effect == "insert" else decision.run_id,
        "assignments": decision.observed,
        "refusal": decision.refusal,
        "error": decision.message,
    }


def _kind(wake: Wake) -> Kind:
    return "owed" if wake.owed else "bare"


def _questions(wake: Wake) -> tuple[str, ...]:
    return (
        "agent_status",
        "paused",
        *(("duplicate_of",) if wake.key else ()),
        *(("merge_into",) if wake.coalesces else ()),
        *(("assignments",) if wake.is_agent_assignment and wake.task_id else ()),
    )


def _clear_params(wake: Wake, instant: dt.datetime | None) -> dict[str, Any]:
    decision = _decision_columns(GATES[-1], _QUEUED)
    return {**wake.columns(), **decision, **_params(wake, instant), "allowance": ASSIGNMENT_ALLOWANCE}


def _params(wake: Wake, instant: dt.datetime | None) -> dict[str, Any]:
    return {
        "instant": instant,
        "wake_id": wake.id,
        "agent_profile_id": wake.agent_profile_id,
        "reason": wake.reason,
        "key": wake.key,
        "task_id": wake.task_id,
        "task_scope": wake.task_scope,
        "coalesce_window": COALESCE_WINDOW,
        "duplicate_lookback": DUPLICATE_LOOKBACK,
        "allowance_window": ALLOWANCE_WINDOW,
    }
