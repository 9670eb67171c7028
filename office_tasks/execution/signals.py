"""Signals: messages that say "some run may start". They carry nothing, and one too many finds nothing (REC-2.6)."""

from __future__ import annotations

import time
from typing import Final

import structlog
from celery import Celery

log: Final = structlog.stdlib.get_logger("office")

TASK: Final = "office.execute_run"
QUEUE: Final = "execution"
# A broker that stands still costs whoever sends seconds: a message that queues many runs is to pay that once.
QUIET_SECONDS: Final = 5.0


class Signals:
    """What one process sends. A broker that is away is no error: the safety net sends others."""

    def __init__(self, app: Celery) -> None:
        """Send through `app`; opens nothing."""
        self._app = app
        self._quiet_until = 0.0

    def send(self, times: int = 1) -> int:
        """Send that many signals; return how many went out. After a failure none is tried for `QUIET_SECONDS`."""
        for sent in range(times):
            if time.monotonic() < self._quiet_until or not self._sent():
                return sent
        return times

    def waiting(self) -> int:
        """Return how many signals no worker has taken yet."""
        with self._app.connection_for_write() as connection, connection.channel() as channel:
            # As Celery declares it. Redis has no empty queues: to ask only for what is there would be refused.
            return int(channel.queue_declare(queue=QUEUE, durable=True, auto_delete=False).message_count)

    def _sent(self) -> bool:
        try:
            # Without limits: by default a message carries its sender's, and those would go before the executor's own.
            self._app.send_task(TASK, ignore_result=True, time_limit=None, soft_time_limit=None)
        except Exception as error:  # noqa: BLE001 - the run stands, whatever the broker says
            self._quiet_until = time.monotonic() + QUIET_SECONDS
            log.warning("run_not_signalled", error=type(error).__name__)
            return False
        return True
