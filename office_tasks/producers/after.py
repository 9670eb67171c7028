"""What follows a mutation's commit: admit what it owes, interrupt whom it displaced, store the result (PRO-3.5).

Each part runs from the stored facts and may run again: for a redelivery, for the relay. A part that fails is logged and
stops no other; whatever it left owed, the relay takes up.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from db import executions, mutations, owed
from db.engine import autocommit
from db.errors import brief
from office_tasks import validation
from office_tasks.admission import Answer, Outcome, Wake, admit, poison, stored
from office_tasks.errors import NotFound, WorkspacePaused
from office_tasks.prose import shown
from office_tasks.termination import Guard, end_unless_retained

log: Final = structlog.stdlib.get_logger("office")

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Whose running executions are to stop: an agent's or everybody's on a task, or a workspace's (REC-2.10)."""

    task_id: str | None = None
    agent_profile_id: str | None = None
    workspace_id: str | None = None


def find(engine: Engine, mutation_id: str) -> mutations.Recorded | None:
    """Return the mutation that this message committed, or None."""
    with autocommit(engine) as connection:
        return mutations.find(connection, mutation_id)


def settle(engine: Engine, mutation_id: str, instant: dt.datetime | None = None) -> Result:
    """Run the after-commit part of a committed mutation, or return what it came to when that is done already.

    Raises:
        NotFound: no such mutation committed.
    """
    known = find(engine, validation.identifier("mutation_id", mutation_id))
    if known is None:
        raise NotFound(f"there is no mutation {shown(mutation_id)}")
    if known.result is not None:
        return dict(known.result)
    wakes = stored_wakes(engine, mutation_id)
    return settle_now(engine, mutation_id, known.facts, wakes, known.committed_at, instant)


def settle_now(
    engine: Engine,
    mutation_id: str,
    facts: Mapping[str, Any],
    wakes: Sequence[Wake],
    committed_at: dt.datetime,
    instant: dt.datetime | None,
) -> Result:
    """Run the after-commit part of a mutation whose facts are at hand."""
    answers = [admit_owed(engine, one, instant) for one in wakes]
    return _close(engine, mutation_id, facts, answers, committed_at, instant)


def give_up(engine: Engine, mutation_id: str) -> None:
    """Close what the mutation still owes as poisoned, and settle it (ADM-10.5); nothing when it never committed.

    Its wakes alone are given up: whom it displaced is displaced, whatever became of its message.
    """
    known = find(engine, mutation_id)
    if known is None or known.result is not None:
        return
    answers = [poison(engine, one) for one in stored_wakes(engine, mutation_id)]
    _close(engine, mutation_id, known.facts, answers, known.committed_at, None)


def _close(
    engine: Engine,
    mutation_id: str,
    facts: Mapping[str, Any],
    answers: Sequence[Answer],
    committed_at: dt.datetime,
    instant: dt.datetime | None,
) -> Result:
    """Do what follows the wakes of a mutation, and settle it."""
    whom = facts["interrupt"]
    interrupt = executions.Interrupt(**whom, committed_at=committed_at) if whom else None
    # Before the question, which may have to wait: what it withholds or not must not delay this (SES-3.3).
    at_once = _interrupt(engine, interrupt) if interrupt and facts.get("guard") else {}
    result = {**facts["result"], **_woken(answers), **at_once, **_guarded(engine, facts, instant)}
    left = interrupt if at_once.get("interrupted") is None else None
    return {**result, **_finish(engine, mutation_id, result, left, instant)}


def stored_wakes(engine: Engine, mutation_id: str) -> list[Wake]:
    """Return the wakes of a mutation as they were owed."""
    with autocommit(engine) as connection:
        return [stored(row) for row in mutations.wakes_of(connection, mutation_id)]


def admit_owed(engine: Engine, wanted: Wake, instant: dt.datetime | None = None) -> Answer:
    """Try to admit one owed wake; a failure leaves it owed and stops no other (PRO-5.3, ADM-7.3)."""
    answer = attempt(engine, wanted, instant)
    # A pause is waited out; anything else is tried again, later each time.
    if answer.state == "owed" and answer.refusal != WorkspacePaused.refusal:
        _postpone(engine, answer)
    return answer


def attempt(engine: Engine, wanted: Wake, instant: dt.datetime | None = None) -> Answer:
    """Try to admit one owed wake; what fails is an answer too, and when to try again is the caller's to say."""
    try:
        return admit(engine, wanted, instant=instant)
    except DBAPIError as error:
        return _undecided(wanted, brief(error))


def _undecided(wanted: Wake, error: str) -> Answer:
    return Answer(
        wake_id=wanted.id,
        agent_profile_id=wanted.agent_profile_id,
        reason=wanted.reason,
        key=wanted.key,
        state="owed",
        outcome=Outcome.NONE,
        gate=None,
        run_id=None,
        observed=None,
        refusal=None,
        message=error,
    )


def _postpone(engine: Engine, answer: Answer) -> None:
    log.warning("wake_still_owed", wake_id=answer.wake_id, reason=answer.reason, error=answer.message)
    try:
        with autocommit(engine) as connection:
            owed.postpone_wake(connection, answer.wake_id, answer.message or "")
    except DBAPIError as error:
        log.warning("wake_not_postponed", wake_id=answer.wake_id, error=brief(error))


def _finish(
    engine: Engine,
    mutation_id: str,
    result: Result,
    interrupt: executions.Interrupt | None,
    instant: dt.datetime | None,
) -> Result:
    """Store the result and interrupt whom the change displaced; return what the interrupt adds to the result."""
    try:
        with autocommit(engine) as connection:
            runs = mutations.settle(connection, mutation_id, result, interrupt, instant)
    except DBAPIError as error:
        # Not settling is no loss: a redelivery or the relay does it again. The interrupt should not have to wait.
        log.warning("mutation_not_settled", mutation_id=mutation_id, error=brief(error))
        return _interrupt(engine, interrupt) if interrupt else {}
    return _interrupted(runs, interrupt) if interrupt else {}


def _interrupt(engine: Engine, interrupt: executions.Interrupt) -> Result:
    try:
        with autocommit(engine) as connection:
            return _interrupted(executions.interrupt(connection, interrupt), interrupt)
    except DBAPIError as error:
        log.warning("interrupt_failed", **_where(interrupt), error=brief(error))
        return {"interrupted": None}


def _interrupted(runs: Sequence[str], interrupt: executions.Interrupt) -> Result:
    for run_id in runs:
        log.info("run_interrupted", run_id=run_id, **_where(interrupt))
    return {"interrupted": list(runs)}


def _where(interrupt: executions.Interrupt) -> dict[str, str | None]:
    if interrupt.scope == "workspace":
        return {"workspace_id": interrupt.workspace_id}
    return {"task_id": interrupt.task_id}


def _guarded(engine: Engine, facts: Mapping[str, Any], instant: dt.datetime | None) -> Result:
    """Take the guarded step of a mutation that took a capacity away: strictly after its commit (SES-1.2)."""
    guard = facts.get("guard")
    return {"session": end_unless_retained(engine, Guard(**guard), instant)} if guard else {}


def _woken(answers: Sequence[Answer]) -> Result:
    queued = [str(answer.run_id) for answer in answers if answer.outcome is Outcome.QUEUED]
    return {"wakes": [answer.owed_result() for answer in answers], "runs": queued}
