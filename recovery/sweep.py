"""The sweep: tasks that were assigned and never started are woken, through the same admission seam (REC-1).

At most five a pass, over all workspaces, whatever comes of them: a storm of unstarted tasks must not become a storm of
runs. A task is taken in a short transaction of its own, under a lock that a sweep's death frees, and woken after that;
if the sweep dies in between, the task's next turn comes a gap later.
"""

from __future__ import annotations

from typing import Any, Final

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from db import unstarted
from db.errors import brief
from office_tasks import reasons
from office_tasks.admission import admit, wake
from office_tasks.producers.producer import Producer

log: Final = structlog.stdlib.get_logger("office")

CAP: Final = 5
Summary = dict[str, Any]


def sweep_once(engine: Engine, sweep_id: str) -> Summary:
    """Do one pass and return what it did.

    Args:
        engine: each wake takes a connection of its own from it, one after the other.
        sweep_id: the Celery task id; the wakes are numbered under it.
    """
    with engine.begin() as connection:
        if not unstarted.take_turn(connection):
            log.info("recovery_sweep_complete", candidates=0, dispatched=0, skipped={}, failed=0, lock="taken")
            return {"candidates": 0, "dispatched": 0, "skipped": {}, "failed": 0, "lock": "taken"}
        look = unstarted.take(connection, CAP) if unstarted.is_adopted(connection) else unstarted.Look(0, {}, [])
    woken = [_dispatch(engine, f"{sweep_id}#{number}", turn) for number, turn in enumerate(look.turns, start=1)]
    summary = {
        "candidates": look.candidates,
        "dispatched": sum(woken),
        "skipped": dict(look.skipped),
        "failed": len(woken) - sum(woken),
    }
    log.info("recovery_sweep_complete", **summary)
    return summary


def _dispatch(engine: Engine, wake_id: str, turn: unstarted.Unstarted) -> bool:
    """Wake one task's runner; a failure stops no other (REC-1.9)."""
    # Keyless by design: the assignment's own key would be refused by the index, and the sweep would recover nothing.
    asked = wake(
        wake_id=wake_id,
        agent_profile_id=turn.runner_id,
        reason=reasons.TASK_ASSIGNED,
        payload={"task_id": turn.task_id},
        key=None,
        producer=Producer.RECOVERY_SWEEP,
    )
    try:
        answer = admit(engine, asked)
    except DBAPIError as error:
        log.warning("recovery_failed", task_id=turn.task_id, agent_profile_id=turn.runner_id, error=brief(error))
        return False
    log.info("recovery_dispatch", task_id=turn.task_id, agent_profile_id=turn.runner_id)
    return answer.refusal is None
