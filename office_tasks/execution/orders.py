"""What an operator orders of a run: that it be cancelled, or that its work be done again."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Engine

from db import executions, listing
from db.engine import autocommit
from db.states import RUN_TERMINAL
from office_tasks import reasons, validation
from office_tasks.admission import Wake, wake
from office_tasks.errors import InvalidInput, NotFound
from office_tasks.producers import bare
from office_tasks.producers.producer import Producer

log: Final = structlog.stdlib.get_logger("office")

Result = dict[str, Any]


def cancel(engine: Engine, run_id: object, instant: dt.datetime | None = None) -> Result:
    """Cancel a run: a queued one at once; a claimed one is asked to stop (REC-2.10).

    Returns:
        `run_id`; its `status` from now on, `cancelled` or `claimed`; since when it is asked to stop, if it is; and
        whether this call `changed` anything: asked once, an execution is not asked again.

    Raises:
        InvalidInput: no UUID, or a run that is over.
        NotFound: no such run.
    """
    wanted = validation.run_id(run_id)
    with autocommit(engine) as connection:
        status = executions.cancel(connection, wanted, executions.OPERATOR, instant)
        run = _run(connection, wanted)
    if status is None and run["status"] not in ("claimed", "cancelled"):
        raise InvalidInput(f"run {wanted} was not cancelled: it is {run['status']}")
    if status:
        log.info("run_cancel_ordered", run_id=str(wanted), status=status)
    return {
        "run_id": str(wanted),
        "status": status or run["status"],
        "cancel_requested_at": run["cancel_requested_at"],
        "changed": status is not None,
    }


def retry(engine: Engine, wake_id: str, run_id: object, instant: dt.datetime | None = None) -> Result:
    """Ask that the work of a run that is over be done again: a wake of the same agent with the same payload.

    The wake has no key: the run's own would be refused, and every order is an occurrence of its own (PRO-1).

    Args:
        engine: where the run is.
        wake_id: the new wake's id; an order given twice under one id is one order.
        run_id: the run; itself it stays as it is.
        instant: for tests; None reads Postgres' clock.

    Returns:
        The flat result of ADM-7.2, and which run was `retried`.

    Raises:
        InvalidInput: no UUID, or a run that is not over.
        NotFound: no such run.
        Refused: gate 1 or 2 declined: the agent or its workspace may not be woken.
    """
    wanted = validation.run_id(run_id)
    with autocommit(engine) as connection:
        run = _run(connection, wanted)
    if run["status"] not in RUN_TERMINAL:
        raise InvalidInput(f"run {wanted} was not retried: it is {run['status']}, and not over")
    result = bare.enqueue(engine, _again(wake_id, run), instant=instant)
    log.info("run_retry_ordered", run_id=result["run_id"], retried=str(wanted), outcome=result["outcome"])
    return {**result, "retried": str(wanted)}


def _again(wake_id: str, run: Mapping[str, Any]) -> Wake:
    return wake(
        wake_id=wake_id,
        agent_profile_id=run["agent_profile_id"],
        reason=reasons.MANUAL_RESUME,
        payload=run["payload"],
        key=None,
        producer=Producer.MANUAL_RESUME,
        admitted_before=True,
    )


def _run(connection: Connection, run_id: uuid.UUID) -> Mapping[str, Any]:
    found = listing.run(connection, run_id)
    if found is None:
        raise NotFound(f"there is no run '{run_id}'")
    return found
