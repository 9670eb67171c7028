"""One execution: begin, handle, end, and say that the next may begin (REC-2)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from db.errors import brief
from office_tasks.execution import backoff, handler
from office_tasks.execution.begin import Begun, begin
from office_tasks.execution.context import RunContext, RunFacts
from office_tasks.execution.end import Over, end, report
from office_tasks.execution.keeper import Keeper
from office_tasks.faults import fault_point
from office_tasks.retries import kind_of

log: Final = structlog.stdlib.get_logger("office")

# Five minutes: longer than Postgres takes to restart.
ENDING_ATTEMPTS: Final = 150
ENDING_GAP_SECONDS: Final = 2.0


def execute_next(engine: Engine, path: str, limit: float | None = None) -> Over | None:
    """Execute the next run that may start, to its end; return what became of it, or None when there was none.

    Args:
        engine: with a connection for this thread and one, now and then, for the lease.
        path: the handler, `package.module:function`.
        limit: seconds after which the handler is to stop; None for none. Whoever calls must see to it that
            `SoftTimeLimitExceeded` is raised in the handler then: here only `cancelled()` turns true.
    """
    begun = begin(engine)
    if isinstance(begun, Over):
        report(begun)
    if not isinstance(begun, Begun):
        return begun
    fault_point("run_begun")
    return _execute(engine, begun, path, limit)


def _execute(engine: Engine, begun: Begun, path: str, limit: float | None) -> Over:
    def give_up() -> None:
        late = backoff.failed(begun.run.attempt, f"the handler did not stop after OFFICE_RUN_TIME_LIMIT, {limit:g} s")
        _insist(lambda: end(engine, begun.run, late))

    with Keeper(engine, begun.run, limit, give_up) as keeper:
        ending = handler.outcome(path, _context(begun, keeper), limit)
        fault_point("run_handled")
        over = _insist(lambda: end(engine, begun.run, ending))
    if handler.worker_stops():
        sys.exit()
    return over


def _insist(write: Callable[[], Over]) -> Over:
    """Write an ending, again while Postgres is away: what a handler did should not be done twice for a restart's sake.

    The lease is kept meanwhile. If it is lost all the same, the write says so.
    """
    for _ in range(ENDING_ATTEMPTS):
        try:
            return write()
        except (SQLAlchemyError, SoftTimeLimitExceeded) as error:
            if kind_of(error) is None:
                raise
            log.warning("run_end_not_written", error=brief(error))
            time.sleep(ENDING_GAP_SECONDS)
    return write()


def _context(begun: Begun, keeper: Keeper) -> RunContext:
    run = begun.run
    facts = RunFacts(run.id, run.reason, run.payload, run.idempotency_key, run.coalesced_count, run.requested_at)
    return RunContext(facts, begun.task, begun.agent, begun.session, run.attempt, keeper.cancelled)
