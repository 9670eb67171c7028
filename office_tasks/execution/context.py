"""What a handler is given, and what it may raise (REC-2.4)."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from db.sessions import SessionFacts
from db.work import AgentFacts, TaskFacts

Json = Any


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The run: why its agent was woken, and with what."""

    id: uuid.UUID
    reason: str
    payload: Json
    idempotency_key: str | None
    coalesced_count: int
    requested_at: dt.datetime


@dataclass(frozen=True, slots=True)
class RunContext:
    """One execution of one run.

    Args:
        run: the run.
        task: the task it is about; None when its payload names none.
        agent: who works.
        session: the conversation to go on with; None without a task.
        attempt: 1 for the first execution, at most 5. A second one may start when the first one's worker died, and
            does not know how far that came: a handler must tolerate it.
        cancelled: whether the execution should stop: it was asked to, or it is no longer ours, or its time is up. Asks
            Postgres once a second at the most, so it may be called in a loop.
    """

    run: RunFacts
    task: TaskFacts | None
    agent: AgentFacts
    session: SessionFacts | None
    attempt: int
    cancelled: Callable[[], bool]


Handler = Callable[[RunContext], Json]


class RetryAt(Exception):
    """Raised by a handler that wants the next attempt at a time of its choosing; one of the four retries (REC-2.7)."""

    def __init__(self, when: dt.datetime, why: str = "the handler asked for it") -> None:
        """Ask for another attempt.

        Args:
            when: an instant with a time zone; in the past means as soon as possible.
            why: kept on the run as its error.

        Raises:
            ValueError: `when` has no time zone, or is outside the years 1 to 9999 of UTC, which no column gives back.
        """
        if when.utcoffset() is None:
            raise ValueError(f"RetryAt needs an instant with a time zone, not {when.isoformat()}")
        super().__init__(why)
        try:
            self.when = when.astimezone(dt.UTC)
        except OverflowError:
            raise ValueError(f"RetryAt needs an instant within the years 1 to 9999, not {when.isoformat()}") from None
