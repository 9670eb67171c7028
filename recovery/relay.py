"""The relay: what no message settled is settled, what is owed is admitted, what happened is said (REC-3.1, PRO-7.1)."""

from __future__ import annotations

from collections import Counter
from typing import Final

import structlog
from redis.exceptions import RedisError
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from db import outbox, owed
from db.engine import autocommit
from db.errors import brief
from office_tasks.admission import stored
from office_tasks.errors import OfficeError
from office_tasks.faults import fault_point
from office_tasks.producers.after import admit_owed, settle
from office_tasks.stream import EventStream

log: Final = structlog.stdlib.get_logger("office")

BATCH: Final = 200


def relay_once(engine: Engine, stream: EventStream | None, batch: int = BATCH) -> dict[str, int]:
    """Do one bounded pass and return what it did; safe to run twice at once, and to kill anywhere (REC-3.4).

    Args:
        engine: each wake and each mutation takes connections of its own from it.
        stream: where events go; None when there is none.
        batch: how many mutations, wakes and events at the most.
    """
    done: Counter[str] = Counter(settled=0, failed=0, decided=0, still_owed=0, published=0)
    done.update(_settle(engine, batch))
    done.update(_admit(engine, batch))
    if stream is not None:
        done.update(published=_publish(engine, stream, batch))
    return dict(done)


def _settle(engine: Engine, batch: int) -> Counter[str]:
    with autocommit(engine) as connection:
        due = owed.due_mutations(connection, batch)
    return Counter("settled" if _settled(engine, mutation_id) else "failed" for mutation_id in due)


def _settled(engine: Engine, mutation_id: str) -> bool:
    try:
        settle(engine, mutation_id)
    except (DBAPIError, OfficeError) as error:
        log.warning("mutation_not_settled", mutation_id=mutation_id, error=brief(error))
        with autocommit(engine) as connection:
            owed.postpone_mutation(connection, mutation_id)
        return False
    return True


def _admit(engine: Engine, batch: int) -> Counter[str]:
    with autocommit(engine) as connection:
        due = [stored(row) for row in owed.due_wakes(connection, batch)]
    return Counter("still_owed" if admit_owed(engine, one).state == "owed" else "decided" for one in due)


def _publish(engine: Engine, stream: EventStream, batch: int) -> int:
    """Append the oldest events and mark them: at least once, and one relay at a time, so in order."""
    with engine.begin() as connection:
        waiting = outbox.unsent(connection, batch) if outbox.take_turn(connection) else []
        if not waiting:
            return 0
        try:
            stream.append(waiting)
        except RedisError as error:
            log.warning("events_not_published", waiting=len(waiting), error=type(error).__name__)
            return 0
        fault_point("events_appended")
        outbox.mark_sent(connection, [one.id for one in waiting])
    return len(waiting)
