"""One mutation: committed with what it owes, then settled (PRO-6.1).

What is committed is the truth; what follows is repeatable. A redelivered message never mutates again: it finds its
mutation, and returns the stored result or runs the after-commit part again from the stored facts.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from db import clock, mutations
from db.engine import autocommit
from db.errors import brief
from office_tasks.admission import Answer, Keyless, Outcome, Wake, admit, poison, wake
from office_tasks.admission.wake import AGENT, USER
from office_tasks.errors import NotFound
from office_tasks.faults import fault_point

log: Final = structlog.stdlib.get_logger("office")

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Actor:
    """Who causes a mutation: an agent, or the user when no agent is named (ADM-5.8)."""

    agent_id: str | None

    @property
    def type(self) -> str:
        """`agent` or `user`."""
        return AGENT if self.agent_id else USER

    def payload(self) -> dict[str, str]:
        """Return the fields that name the actor in a wake's payload."""
        return {"actor_type": AGENT, "actor_id": self.agent_id} if self.agent_id else {"actor_type": USER}


@dataclass(frozen=True, slots=True)
class Change:
    """What a mutation did and owes, as its transaction knows it."""

    kind: str
    actor: Actor
    result: Result
    task_id: str | None = None
    previous_runner_id: str | None = None
    generation: int | None = None
    wakes: Sequence[Wake] = ()
    events: Sequence[Mapping[str, Any]] = field(default=())


def commit(
    engine: Engine, mutation_id: str, change: Callable[[Connection, dt.datetime], Change], instant: dt.datetime | None
) -> Result:
    """Run `change` in a transaction, record it with what it owes, then settle it.

    Args:
        engine: the transaction takes one connection, admission another after it is over.
        mutation_id: the Celery task id: what makes a redelivery recognisable.
        change: writes, and returns what it wrote; raises before it writes when it may not.
        instant: for replay and tests; None reads Postgres' clock.

    Returns:
        The mutation's result, its `wakes` and `runs` included (ADM-7.3).
    """
    try:
        done = _transact(engine, mutation_id, change, instant)
    except Exception:
        # Almost every message comes once, so nobody asks beforehand whether this one came before. One that did fails
        # here, on its mutation's own key at the latest, with nothing written; and what it met before that (the task
        # that it created itself, a permission lost since) says nothing against a mutation that did commit.
        if _find(engine, mutation_id) is None:
            raise
        return settle(engine, mutation_id, instant)
    fault_point("after_commit")
    return _settle(engine, mutation_id, done.result, done.wakes, instant)


def settle(engine: Engine, mutation_id: str, instant: dt.datetime | None = None) -> Result:
    """Run the after-commit part of a committed mutation, or return what it came to when that is done already.

    Raises:
        NotFound: no such mutation committed.
    """
    known = _find(engine, mutation_id)
    if known is None:
        raise NotFound(f"there is no mutation {mutation_id!r}")
    if known.result is not None:
        return dict(known.result)
    return _settle(engine, mutation_id, known.facts, stored_wakes(engine, mutation_id), instant)


def give_up(engine: Engine, mutation_id: str) -> None:
    """Close what the mutation still owes as poisoned, and settle it (ADM-10.5); nothing when it never committed."""
    known = _find(engine, mutation_id)
    if known is None or known.result is not None:
        return
    answers = [poison(engine, owed) for owed in stored_wakes(engine, mutation_id)]
    _store(engine, mutation_id, _with_wakes(known.facts, answers), None)


def stored_wakes(engine: Engine, mutation_id: str) -> list[Wake]:
    """Return the wakes of a mutation as they were owed."""
    with autocommit(engine) as connection:
        return [_from_row(dict(row)) for row in mutations.wakes_of(connection, mutation_id)]


def _find(engine: Engine, mutation_id: str) -> mutations.Recorded | None:
    with autocommit(engine) as connection:
        return mutations.find(connection, mutation_id)


def _transact(
    engine: Engine, mutation_id: str, change: Callable[[Connection, dt.datetime], Change], instant: dt.datetime | None
) -> Change:
    with engine.begin() as connection:
        at = instant or clock.now(connection)
        done = change(connection, at)
        mutations.record(
            connection, _columns(mutation_id, done, at), [_owed_columns(owed) for owed in done.wakes], done.events
        )
        fault_point("before_commit")
    return done


def _columns(mutation_id: str, done: Change, instant: dt.datetime) -> dict[str, Any]:
    return {
        "id": mutation_id,
        "kind": done.kind,
        "task_id": done.task_id,
        "previous_runner_id": done.previous_runner_id,
        "generation": done.generation,
        "actor_type": done.actor.type,
        "actor_id": done.actor.agent_id,
        "facts": done.result,
        "instant": instant,
    }


def _owed_columns(owed: Wake) -> dict[str, Any]:
    return {**owed.columns(), "payload": json.loads(owed.payload)}


def _settle(
    engine: Engine, mutation_id: str, facts: Result, wakes: Sequence[Wake], instant: dt.datetime | None
) -> Result:
    result = _with_wakes(facts, [admit_owed(engine, owed, instant) for owed in wakes])
    _store(engine, mutation_id, result, instant)
    return result


def _store(engine: Engine, mutation_id: str, result: Result, instant: dt.datetime | None) -> None:
    # Not settling is no loss: a redelivery or the relay does it again, and every part of it is repeatable.
    try:
        with autocommit(engine) as connection:
            mutations.settle(connection, mutation_id, result, instant)
    except DBAPIError as error:
        log.warning("mutation_not_settled", mutation_id=mutation_id, error=brief(error))


def admit_owed(engine: Engine, owed: Wake, instant: dt.datetime | None = None) -> Answer:
    """Try to admit one owed wake; a failure leaves it owed and stops no other (PRO-5.3, ADM-7.3)."""
    try:
        return admit(engine, owed, instant=instant)
    except DBAPIError as error:
        return _still_owed(engine, owed, brief(error))


def _still_owed(engine: Engine, owed: Wake, error: str) -> Answer:
    log.warning("wake_still_owed", wake_id=owed.id, reason=owed.reason, error=error)
    try:
        with autocommit(engine) as connection:
            mutations.postpone(connection, owed.id, error)
    except DBAPIError as again:
        log.warning("wake_not_postponed", wake_id=owed.id, error=brief(again))
    return Answer(
        wake_id=owed.id,
        agent_profile_id=owed.agent_profile_id,
        reason=owed.reason,
        key=owed.key,
        state="owed",
        outcome=Outcome.NONE,
        gate=None,
        run_id=None,
        observed=None,
        refusal=None,
        message=error,
    )


def _with_wakes(facts: Result, answers: Sequence[Answer]) -> Result:
    queued = [str(answer.run_id) for answer in answers if answer.outcome is Outcome.QUEUED]
    return {**facts, "wakes": [answer.owed_result() for answer in answers], "runs": queued}


def _from_row(row: Mapping[str, Any]) -> Wake:
    return wake(
        wake_id=row["id"],
        agent_profile_id=row["agent_profile_id"],
        reason=row["reason"],
        payload=row["payload"],
        key=row["key"],
        producer=row["producer"],
        keyless=Keyless(row["keyless_cause"], row["keyless_detail"]),
        generation=row["generation"],
        owed=True,
    )
