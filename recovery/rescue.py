"""The rescue: claims whose worker died, and executions that would not stop, are taken over and ended (REC-2.8).

And runs that were queued for an agent in the moment of its deletion are cancelled like the others (SES-1.10).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from db import deleting, leases
from db.errors import brief
from office_tasks.execution import backoff
from office_tasks.execution.end import end
from office_tasks.termination import AGENT_DELETED

log: Final = structlog.stdlib.get_logger("office")

BATCH: Final = 100


def rescue_once(engine: Engine, batch: int = BATCH) -> dict[str, int]:
    """Take over stale claims and end each; safe to run twice at once, and to kill anywhere (REC-3.4).

    Returns:
        How many were `retried`, `failed`, `cancelled`, or `left` to the next pass.
    """
    with engine.begin() as connection:
        stale = leases.take_over(connection, batch)
    done: Counter[str] = Counter(retried=0, failed=0, cancelled=0, left=0)
    done.update(_ended(engine, one) for one in stale)
    with engine.begin() as connection:
        # No claim reaches them, and an agent that is made anew under the same id should not inherit them.
        done.update(cancelled=deleting.cancel_orphans(connection, AGENT_DELETED, batch))
    return dict(done)


def _ended(engine: Engine, stale: leases.Stale) -> str:
    # One that was asked to stop is cancelled by any ending.
    become = backoff.worker_died if stale.expired else backoff.deaf
    try:
        return end(engine, stale.run, become(stale.run.attempt)).result
    except SQLAlchemyError as error:
        log.warning("run_not_rescued", run_id=str(stale.run.id), error=brief(error))
        return "left"
