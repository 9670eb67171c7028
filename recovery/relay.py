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
from office_tasks.admission import Wake, stored
from office_tasks.errors import OfficeError
from office_tasks.faults import fault_point
from office_tasks.producers.after import attempt, settle
from office_tasks.stream import EventStream

log: Final = structlog.stdlib.get_logger("office")

BATCH: Final = 200
UNFINISHED: Final = "the attempt did not end"
# Saying is cheaper than admitting, and every mutation says something: a pass must keep up with a busy office.
EVENTS: Final = 5_000


def relay_once(engine: Engine, stream: EventStream | None, batch: int = BATCH, events: int = EVENTS) -> dict[str, int]:
    """Do one bounded pass and return what it did; safe to run twice at once, and to kill anywhere (REC-3.4).

    Args:
        engine: each wake and each mutation takes connections of its own from it.
        stream: where events go; None when there is none.
        batch: how many mutations and how many wakes at the most.
        events: how many events at the most.
    """
    done: Counter[str] = Counter(settled=0, failed=0, decided=0, still_owed=0, published=0)
    done.update(_settle(engine, batch))
    done.update(_admit(engine, batch))
    if stream is not None:
        done.update(published=_publish(engine, stream, events))
    return dict(done)


def _settle(engine: Engine, batch: int) -> Counter[str]:
    with autocommit(engine) as connection:
        due = owed.due_mutations(connection, batch)
    return Counter("settled" if _settled(engine, mutation_id) else "failed" for mutation_id in due)


def _settled(engine: Engine, mutation_id: str) -> bool:
    try:
        with autocommit(engine) as connection:
            owed.postpone_mutation(connection, mutation_id)
        settle(engine, mutation_id)
    except (DBAPIError, OfficeError) as error:
        log.warning("mutation_not_settled", mutation_id=mutation_id, error=brief(error))
        return False
    return True


def _admit(engine: Engine, batch: int) -> Counter[str]:
    with autocommit(engine) as connection:
        due = [stored(row) for row in owed.due_wakes(connection, batch)]
    return Counter("decided" if _decided(engine, one) else "still_owed" for one in due)


def _decided(engine: Engine, wanted: Wake) -> bool:
    # Put off before it is tried: an attempt that takes this process with it must not be the next pass' first again.
    try:
        with autocommit(engine) as connection:
            owed.postpone_wake(connection, wanted.id, UNFINISHED)
        answer = attempt(engine, wanted)
        if answer.state == "owed":
            log.warning("wake_still_owed", wake_id=wanted.id, reason=wanted.reason, error=answer.message)
            with autocommit(engine) as connection:
                owed.record_failure(connection, wanted.id, answer.message or "")
    except DBAPIError as error:
        log.warning("wake_not_attempted", wake_id=wanted.id, error=brief(error))
        return False
    return answer.state != "owed"


def _publish(engine: Engine, stream: EventStream, most: int) -> int:
    """Append the oldest events and mark them: at least once, and one relay at a time, so in order."""
    with engine.begin() as connection:
        waiting = outbox.unsent(connection, most) if outbox.take_turn(connection) else []
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
