"""While a handler runs: its lease is renewed, and it can learn that it should stop (REC-2.8, REC-2.10)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Final, Self

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from db import leases
from db.claims import Claimed
from db.engine import autocommit
from db.errors import brief

log: Final = structlog.stdlib.get_logger("office")

RENEWAL_SECONDS: Final = 20.0
# A renewal that failed is tried again well within the lease.
AGAIN_SECONDS: Final = 2.0
ASK_SECONDS: Final = 1.0


class Keeper:
    """Keeps one lease, from a thread of its own, for as long as it is entered.

    The thread needs the interpreter: a handler that holds it for a minute, in C code, loses its lease. A subprocess
    does not.
    """

    def __init__(self, engine: Engine, run: Claimed, limit: float | None, give_up: Callable[[], None]) -> None:
        """Keep the lease of `run`.

        Args:
            engine: a connection is taken from it for each renewal.
            run: the run, claimed.
            limit: seconds after which the execution is to stop; None for none.
            give_up: called once when it did not stop within the grace after its limit.
        """
        self._engine, self._run, self._limit, self._give_up = engine, run, limit, give_up
        self._began = time.monotonic()
        self._over = threading.Event()
        self._stop = False
        self._asked_at = self._began
        # In the context of whoever made it: its lines too name the Celery task that they are of (OPS-1.3).
        keep = partial(copy_context().run, self._keep)
        self._thread = threading.Thread(target=keep, name=f"lease-{run.id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def cancelled(self) -> bool:
        """Tell whether the execution should stop; asks Postgres once a second at the most."""
        if not self._stop and time.monotonic() - self._asked_at >= ASK_SECONDS:
            self._asked_at = time.monotonic()
            self._learn(leases.asked_to_stop)
        return self._stop or self._is_late(0)

    def _keep(self) -> None:
        wait = RENEWAL_SECONDS
        while not self._over.wait(self._until_given_up(wait)):
            if self._is_late(leases.GRACE.total_seconds()):
                self._give_up()
                return
            wait = RENEWAL_SECONDS if self._learn(leases.renew) else AGAIN_SECONDS

    def _learn(self, ask: Callable[..., bool | None]) -> bool:
        """Ask about the lease; tell whether there was an answer."""
        try:
            with autocommit(self._engine) as connection:
                answer = ask(connection, self._run.id, self._run.lease_token)
        except SQLAlchemyError as error:
            log.warning("lease_not_read", run_id=str(self._run.id), error=brief(error))
            return False
        # No answer from the row means that the lease is lost: whatever the execution does from now on is for nothing.
        self._stop = self._stop or answer is not False
        return True

    def _is_late(self, grace: float) -> bool:
        return self._limit is not None and time.monotonic() - self._began >= self._limit + grace

    def _until_given_up(self, wait: float) -> float:
        if self._limit is None:
            return wait
        left = self._began + self._limit + leases.GRACE.total_seconds() - time.monotonic()
        return max(0.0, min(wait, left))
