"""Signals: messages that say "some run may start". They carry nothing, and one too many finds nothing (REC-2.6)."""

from __future__ import annotations

from typing import Final

import structlog
from celery import Celery

log: Final = structlog.stdlib.get_logger("office")

TASK: Final = "office.execute_run"
QUEUE: Final = "execution"


def send(app: Celery, times: int = 1) -> int:
    """Send that many signals; return how many went out. A broker that is away is no error: the net sends others."""
    for sent in range(times):
        try:
            app.send_task(TASK, ignore_result=True)
        except Exception as error:  # noqa: BLE001 - the run stands, whatever the broker says
            log.warning("run_not_signalled", error=type(error).__name__)
            return sent
    return times


def waiting(app: Celery) -> int:
    """Return how many signals no worker has taken yet."""
    with app.connection_for_write() as connection, connection.channel() as channel:
        # As Celery declares it. Redis has no empty queues: to ask only for what is there would be refused.
        return int(channel.queue_declare(queue=QUEUE, durable=True, auto_delete=False).message_count)
