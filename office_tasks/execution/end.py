"""After a handler: the run's one ending is written, its coordinator hears of a failure, and it is counted (REC-2.7)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Engine

from db import endings, work
from db.claims import Claimed
from db.endings import Ended, Ending
from office_tasks import keys, reasons, telemetry
from office_tasks.admission import Wake, wake
from office_tasks.errors import OfficeError
from office_tasks.producers.mutation import Change, Transaction, caller, commit
from office_tasks.producers.producer import Producer

log: Final = structlog.stdlib.get_logger("office")

COORDINATOR: Final = "ceo"


class LostLease(OfficeError):
    """The run is no longer ours: another took it over, and what we have to say comes too late."""


@dataclass(frozen=True, slots=True)
class Over:
    """An execution that ended; `ended` None when its lease was lost, and nothing written."""

    run: Claimed
    ending: Ending
    ended: Ended | None

    @property
    def result(self) -> str:
        """Its end as a label: `finished`, `retried`, `failed`, `cancelled` or `lost`."""
        if self.ended is None:
            return "lost"
        return "retried" if self.ended.status == "queued" else self.ended.status

    def told(self) -> dict[str, Any]:
        """Return it as a Celery task's result."""
        ended = self.ended or Ended("lost", None, None)
        return {
            "run_id": str(self.run.id),
            "result": self.result,
            "attempt": self.run.attempt,
            **({"cancel_reason": ended.cancel_reason} if ended.cancel_reason else {}),
            **({"retry_at": ended.scheduled_retry_at.isoformat()} if ended.scheduled_retry_at else {}),
        }


def end(engine: Engine, run: Claimed, ending: Ending) -> Over:
    """End an execution, once; count and log it. A run that is given up wakes its workspace's coordinator."""
    over = _give_up(engine, run, ending) if ending.event == "fail" else _write(engine, run, ending)
    report(over)
    return over


def write(connection: Connection, run: Claimed, ending: Ending) -> Over:
    """End an execution in the caller's transaction, who is to `report` it after the commit."""
    return Over(run, ending, endings.end(connection, run.id, run.lease_token, ending))


def report(over: Over) -> None:
    """Count and log an ending. Never fails: telemetry must not turn a finished run into an error (ADM-9.4)."""
    with suppress(Exception):
        telemetry.count_execution(over.run.reason, over.result)
        whose = {"agent_profile_id": over.run.agent_profile_id, "task_id": over.run.task_id}
        # The sentence may hold what the handler worked on; its kind does not, and the row has the rest.
        error = {"error": over.ending.error.partition(":")[0]} if over.ending.error else {}
        tell = log.warning if over.result in ("failed", "lost") else log.info
        tell(f"run_{over.result}", **over.told(), **whose, **error)


def _write(engine: Engine, run: Claimed, ending: Ending) -> Over:
    with engine.begin() as connection:
        return write(connection, run, ending)


def _give_up(engine: Engine, run: Claimed, ending: Ending) -> Over:
    """Fail a run for good, as a mutation: that its coordinator hears of it commits with it, or not at all."""
    written: list[Over] = []

    def work(tx: Transaction) -> Change:
        written[:] = [write(tx.connection, run, ending)]
        return _failure(tx, run, written[0].ended)

    try:
        commit(engine, f"failed:{run.id}", work)
    except LostLease:
        return Over(run, ending, None)
    return written[0]


def _failure(tx: Transaction, run: Claimed, ended: Ended | None) -> Change:
    if ended is None:
        raise LostLease(f"run {run.id} was taken over")
    told = ended.status == "failed" and _coordinator_to_wake(tx.connection, run)
    return Change(
        kind="fail_run",
        actor=caller(run.agent_profile_id),
        result={"run_id": str(run.id), "status": ended.status},
        task_id=run.task_id,
        wakes=[_alarm(tx, run, told)] if told else [],
    )


def _coordinator_to_wake(connection: Connection, run: Claimed) -> str | None:
    coordinator = work.coordinator_of(connection, run.agent_profile_id, COORDINATOR)
    return coordinator if coordinator != run.agent_profile_id else None


def _alarm(tx: Transaction, run: Claimed, coordinator: str) -> Wake:
    payload = {"failed_run_id": str(run.id), "failed_agent_id": run.agent_profile_id, "failed_reason": run.reason}
    return wake(
        wake_id=f"{tx.mutation_id}#1",
        agent_profile_id=coordinator,
        reason=reasons.AGENT_ERROR,
        payload={**({"task_id": run.task_id} if run.task_id else {}), **payload},
        key=keys.agent_error(str(run.id), coordinator),
        producer=Producer.FAILED_RUN,
        owed=True,
    )
