"""One mutation: committed with what it owes, then settled (PRO-6.1).

What is committed is the truth; what follows is repeatable. A redelivered message never mutates again: it finds its
mutation, and returns the stored result or runs the after-commit part again from the stored facts.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Engine

from db import mutations
from office_tasks.admission import Wake
from office_tasks.admission.wake import AGENT, OFFICE, USER
from office_tasks.faults import fault_point
from office_tasks.producers.after import Interrupt, Result, find, settle, settle_now
from office_tasks.termination import Guard

log: Final = structlog.stdlib.get_logger("office")


@dataclass(frozen=True, slots=True)
class Actor:
    """Who causes a mutation: an `agent`, a `user`, or the `office` itself; of a user the id only where one is named."""

    type: str
    id: str | None = None

    @property
    def agent_id(self) -> str | None:
        """Return the agent that it is, or None: whose permissions are asked for."""
        return self.id if self.type == AGENT else None

    def payload(self) -> dict[str, str]:
        """Return the fields that name the actor in a wake's payload."""
        return {"actor_type": self.type, **({"actor_id": self.id} if self.id else {})}


THE_USER: Final = Actor(USER)
THE_OFFICE: Final = Actor(OFFICE)


def caller(agent_id: str | None) -> Actor:
    """Return who calls: the agent, or the user when no agent is named (ADM-5.8)."""
    return Actor(AGENT, agent_id) if agent_id else THE_USER


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a task: its type and the names of what changed, never their values (PRO-7.2)."""

    task_id: str
    type: str
    changed: Sequence[str]


@dataclass(frozen=True, slots=True)
class Transaction:
    """What a change works in. `instant` None is Postgres' present instant."""

    connection: Connection
    mutation_id: str
    instant: dt.datetime | None


@dataclass(frozen=True, slots=True)
class Note:
    """A log line about what the change did: written once that is committed, for until then it may not have happened."""

    event: str
    fields: Mapping[str, Any]


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
    events: Sequence[Event] = ()
    interrupt: Interrupt | None = None
    guard: Guard | None = None
    notes: Sequence[Note] = ()


Work = Callable[[Transaction], Change]


def commit(engine: Engine, mutation_id: str, work: Work, instant: dt.datetime | None = None) -> Result:
    """Run `work` in a transaction, record it with what it owes, then settle it.

    Args:
        engine: the transaction takes one connection, admission another after it is over.
        mutation_id: the Celery task id: what makes a redelivery recognisable.
        work: writes, and returns what it wrote; raises before it writes when it may not.
        instant: for replay and tests; None reads Postgres' clock.

    Returns:
        The mutation's result, its `wakes` and `runs` included (ADM-7.3).
    """
    try:
        with engine.begin() as connection:
            change, committed_at = perform(Transaction(connection, mutation_id, instant), work)
            fault_point("before_commit")
    except Exception:
        # Almost every message comes once, so nobody asks beforehand whether this one came before. One that did fails
        # here, on its mutation's own key at the latest, with nothing written; and what it met before that (the task
        # that it created itself, a permission lost since) says nothing against a mutation that did commit.
        if find(engine, mutation_id) is None:
            raise
        return settle(engine, mutation_id, instant)
    for note in change.notes:
        log.info(note.event, **note.fields)
    fault_point("after_commit")
    return settle_now(engine, mutation_id, _facts(change), change.wakes, committed_at, instant)


def perform(transaction: Transaction, work: Work) -> tuple[Change, dt.datetime]:
    """Do the work and record it, in the caller's transaction; return the change and its instant."""
    change = work(transaction)
    committed_at = mutations.record(
        transaction.connection,
        _columns(transaction, change),
        [_owed_columns(owed) for owed in change.wakes],
        [asdict(event) for event in change.events],
    )
    return change, committed_at


def _columns(transaction: Transaction, change: Change) -> dict[str, Any]:
    return {
        "id": transaction.mutation_id,
        "kind": change.kind,
        "task_id": change.task_id,
        "previous_runner_id": change.previous_runner_id,
        "generation": change.generation,
        "actor_type": change.actor.type,
        "actor_id": change.actor.id,
        "facts": _facts(change),
        "instant": transaction.instant,
    }


def _facts(change: Change) -> dict[str, Any]:
    return {
        "result": change.result,
        "interrupt": asdict(change.interrupt) if change.interrupt else None,
        "guard": asdict(change.guard) if change.guard else None,
    }


def _owed_columns(owed: Wake) -> dict[str, Any]:
    return {**owed.columns(), "payload": json.loads(owed.payload)}
