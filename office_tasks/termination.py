"""The guarded step: a session ends only when its agent holds no capacity on the task any more (SES-1).

First the question, then the terminator, each by itself: no lock, no transaction shared with whatever was committed
before, and nothing is tried again. What cannot be answered keeps the session.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final, Literal

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from db import capacity, sessions
from db.capacity import Capacity, Unresolved
from db.engine import autocommit
from db.errors import DbError, brief
from office_tasks import telemetry, validation
from office_tasks.errors import InvalidInput
from office_tasks.faults import fault_point
from office_tasks.prose import shown

log: Final = structlog.stdlib.get_logger("office")

Result = dict[str, Any]

PARTICIPANT_REMOVED: Final = "participant_removed"
SEAT_CLAIMED: Final = "participant_seat_claimed"
REASSIGNED: Final = "task_reassigned"
GUARDED: Final = (PARTICIPANT_REMOVED, SEAT_CLAIMED, REASSIGNED)
AGENT_DELETED: Final = "agent_deleted"

Retained = Capacity | Literal["read_failed"]


@dataclass(frozen=True, slots=True)
class Guard:
    """Whose session may have to end, and which guarded path asks: one of `GUARDED`."""

    task_id: str
    agent_profile_id: str
    reason: str


def guard(task_id: object, agent_profile_id: object, reason: object) -> Guard:
    """Return the guard that these name; nothing else but the three guarded paths has one (SES-1.1).

    Raises:
        InvalidInput: another reason, or an identifier that is none; an empty one is nobody's.
    """
    if not isinstance(reason, str) or reason not in GUARDED:
        raise InvalidInput(f"reason: must be one of {', '.join(GUARDED)}, not {shown(reason)}")
    task = validation.optional_identifier("task_id", task_id) or ""
    return Guard(task, validation.optional_identifier("agent_profile_id", agent_profile_id) or "", reason)


def end_unless_retained(engine: Engine, guard: Guard, instant: dt.datetime | None = None) -> Result:
    """Ask, then end the live session if the agent holds nothing any more. Never raises for what the database says.

    Args:
        engine: the question and the terminator each take a connection from it.
        guard: an empty task or agent is no question (SES-1.6).
        instant: when the session ended, for tests and replay; None is the office's present.

    Returns:
        `terminated`; with it `session_id` and `from_state`, or what was `retained`, or the terminator's `error`.
    """
    if not (guard.task_id and guard.agent_profile_id):
        return {"terminated": False}
    fault_point("before_question")
    held = _ask(engine, guard)
    if held is None:
        return _terminate(engine, guard, instant)
    telemetry.count_suppressed_termination(guard.reason, held)
    return {"terminated": False, "retained": held}


def _ask(engine: Engine, guard: Guard) -> Retained | None:
    try:
        with autocommit(engine) as connection:
            held = capacity.retained(connection, guard.task_id, guard.agent_profile_id)
    except (SQLAlchemyError, DbError, Unresolved, SoftTimeLimitExceeded) as error:
        said = "there is no such task" if isinstance(error, Unresolved) else brief(error)
        log.warning("session_termination_read_failed", **_whose(guard), error=said)
        return "read_failed"
    if held:
        log.info("session_termination_suppressed", **_whose(guard), retained_capacity=held)
    return held


def _terminate(engine: Engine, guard: Guard, instant: dt.datetime | None) -> Result:
    try:
        with autocommit(engine) as connection:
            ended = sessions.complete(connection, guard.task_id, guard.agent_profile_id, guard.reason, instant)
    except (SQLAlchemyError, DbError, SoftTimeLimitExceeded) as error:
        log.error("session_termination_failed", **_whose(guard), error=brief(error))  # noqa: TRY400 - its row says more
        return {"terminated": False, "error": brief(error)}
    if ended is None:
        return {"terminated": False}
    report(ended, guard.reason)
    return {"terminated": True, "session_id": ended.session_id, "from_state": ended.from_state}


def report(ended: sessions.Completed, reason: str) -> None:
    """Log one session that ended (SES-4.2)."""
    log.info("session_terminated", **ended._asdict(), reason=reason)


def _whose(guard: Guard) -> dict[str, str]:
    return {"task_id": guard.task_id, "agent_profile_id": guard.agent_profile_id, "reason": guard.reason}
