"""The sweep: tasks that were assigned and never started are woken, through the same admission seam (REC-1).

At most five a pass, over all workspaces, whatever comes of them: a storm of unstarted tasks must not become a storm of
runs. A short transaction takes them and owes each its wake, under a lock that a sweep's death frees; the wakes are
admitted after it. While a wake is owed no other sweep takes its task, and it is decided once: by this sweep, however
slow, by the next delivery of its message, or by the relay if it died.
"""

from __future__ import annotations

import json
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from db import mutations, unstarted
from db.errors import brief
from office_tasks import reasons
from office_tasks.admission import wake
from office_tasks.faults import fault_point
from office_tasks.producers.after import find, settle, stored_wakes
from office_tasks.producers.mutation import THE_OFFICE, Change, Transaction, perform
from office_tasks.producers.producer import Producer

log: Final = structlog.stdlib.get_logger("office")

CAP: Final = 5
_NOTHING: Final = unstarted.Look(0, {}, [])
Summary = dict[str, Any]


def sweep_once(engine: Engine, sweep_id: str) -> Summary:
    """Do one pass and return what it did.

    Args:
        engine: each wake takes a connection of its own from it, one after the other.
        sweep_id: the Celery task id: what is taken is committed under it, so that a redelivery takes nothing more.
    """
    summary = _take(engine, sweep_id) if find(engine, sweep_id) is None else None
    if summary is None:
        summary = _dispatch(engine, sweep_id)
    log.info("recovery_sweep_complete", **summary)
    return summary


def _take(engine: Engine, sweep_id: str) -> Summary | None:
    """Take whose turn it is and owe them their wakes; return the summary when nobody is to be woken, else None."""
    with engine.begin() as connection:
        if not unstarted.take_turn(connection):
            return {**_summary(_NOTHING, failed=0), "lock": "taken"}
        look = unstarted.take(connection, CAP) if unstarted.is_adopted(connection) else _NOTHING
        owed = [_owe(connection, sweep_id, number, turn) for number, turn in enumerate(look.turns, start=1)]
        found = _summary(look, failed=owed.count(False))
        if not any(owed):
            return found
        change = Change(kind="recover_unstarted_tasks", actor=THE_OFFICE, result=found)
        perform(Transaction(connection, sweep_id, None), lambda _: change)
        fault_point("recovery_taking")
    fault_point("recovery_taken")
    return None


def _summary(look: unstarted.Look, *, failed: int) -> Summary:
    return {"candidates": look.candidates, "dispatched": 0, "skipped": dict(look.skipped), "failed": failed}


def _owe(connection: Connection, sweep_id: str, number: int, turn: unstarted.Unstarted) -> bool:
    """Owe one task's runner its wake, in a savepoint: a failure stops no other (REC-1.9)."""
    # Keyless by design: the assignment's own key would be refused by the index, and the sweep would recover nothing.
    owed = wake(
        wake_id=f"{sweep_id}#{number}",
        agent_profile_id=turn.runner_id,
        reason=reasons.TASK_ASSIGNED,
        payload={"task_id": turn.task_id},
        key=None,
        producer=Producer.RECOVERY_SWEEP,
        owed=True,
    )
    try:
        with connection.begin_nested():
            mutations.owe_one(connection, sweep_id, {**owed.columns(), "payload": json.loads(owed.payload)})
    except DBAPIError as error:
        log.warning("recovery_failed", task_id=turn.task_id, agent_profile_id=turn.runner_id, error=brief(error))
        return False
    return True


def _dispatch(engine: Engine, sweep_id: str) -> Summary:
    """Admit what the sweep owes; what fails stays owed, and the relay tries it again (REC-3.1)."""
    result = settle(engine, sweep_id)
    owed = {one.id: one for one in stored_wakes(engine, sweep_id)}
    dispatched = 0
    for answer in result["wakes"]:
        whose = {"task_id": owed[answer["wake_id"]].task_id, "agent_profile_id": answer["agent_profile_id"]}
        if answer["run_id"]:
            log.info("recovery_dispatch", **whose)
            dispatched += 1
        else:
            log.warning("recovery_failed", **whose, refusal=answer["refusal"])
    failed = result["failed"] + len(result["wakes"]) - dispatched
    return {**{name: result[name] for name in ("candidates", "skipped")}, "dispatched": dispatched, "failed": failed}
