"""The user's handler: found by its name, called, and whatever comes of it made an ending (REC-2.4)."""

from __future__ import annotations

import datetime as dt
import os
import pkgutil
from functools import cache
from typing import Any, Final

import structlog
from billiard.common import terminate_handler_fired
from celery.exceptions import SoftTimeLimitExceeded

from db.endings import Ending
from office_tasks import validation
from office_tasks.errors import InvalidInput, OfficeError
from office_tasks.execution import backoff
from office_tasks.execution.context import Handler, RetryAt, RunContext

log: Final = structlog.stdlib.get_logger("office")

MAX_ERROR: Final = 2_000


class HandlerError(OfficeError):
    """OFFICE_RUN_HANDLER names nothing that can be called."""


def log_and_finish(context: RunContext) -> dict[str, Any]:
    """Do nothing but say so: the handler of an installation that has none of its own."""
    task_id = context.task.id if context.task else None
    log.info("run_executed", run_id=str(context.run.id), agent_profile_id=context.agent.id, task_id=task_id)
    return {"handled_by": "log_and_finish"}


@cache
def load(path: str) -> Handler:
    """Return the handler that `package.module:function` names; importing it may run code of its own.

    Raises:
        HandlerError: it cannot be imported, or cannot be called.
    """
    try:
        found = pkgutil.resolve_name(path)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - importing the user's module may raise anything
        raise HandlerError(f"OFFICE_RUN_HANDLER {path!r} cannot be imported: {_sentence(error)}") from None
    if not callable(found):
        raise HandlerError(f"OFFICE_RUN_HANDLER {path!r} is no function but {type(found).__name__}")
    return found  # type: ignore[no-any-return]


def outcome(path: str, context: RunContext, limit: float | None) -> Ending:
    """Call the handler and return how its execution ended: finished, or failed for now or for good.

    Args:
        path: `package.module:function`.
        context: what it is given.
        limit: seconds that it may take, for what is said when it took longer; None when there is no limit.
    """
    process = os.getpid()
    try:
        result = load(path)(context)
    except BaseException as error:  # noqa: BLE001 - a handler may raise anything, and must end no worker
        _be_the_process_that(process)
        return _failed(context.attempt, error, limit)
    _be_the_process_that(process)
    return _finished(context.attempt, result)


def _be_the_process_that(called: int) -> None:
    # A handler that forks and lets its child return would have two processes end one run, and one pool too many.
    if os.getpid() != called:
        os._exit(1)


def _failed(attempt: int, error: BaseException, limit: float | None) -> Ending:
    if isinstance(error, RetryAt) and isinstance(when := getattr(error, "when", None), dt.datetime):
        return backoff.failed(attempt, _sentence(error), when)
    if isinstance(error, SoftTimeLimitExceeded) and limit is not None:
        return backoff.failed(attempt, f"the handler took longer than OFFICE_RUN_TIME_LIMIT, {limit:g} s")
    return backoff.worker_stopped(attempt) if worker_stops() else backoff.failed(attempt, _sentence(error))


def _finished(attempt: int, result: object) -> Ending:
    try:
        return Ending("finish", result=validation.payload(result, field="result", absent="null"))
    except InvalidInput as error:
        return backoff.failed(attempt, f"the handler returned what cannot be stored: {error}")
    except BaseException as error:  # noqa: BLE001 - what a container of the user's own does when it is looked at
        return backoff.failed(attempt, f"the handler returned what cannot be stored: {_sentence(error)}")


def worker_stops() -> bool:
    """Tell whether this pool process was told to end, which reaches a handler as SystemExit."""
    return bool(terminate_handler_fired())


def _sentence(error: BaseException) -> str:
    said = _said(error).replace("\0", "").encode(errors="replace").decode()
    return f"{type(error).__name__}: {said}"[:MAX_ERROR] if said else type(error).__name__


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - an error of the user's may not even be able to say what it is
        return ""
