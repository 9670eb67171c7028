"""The handler of P6: tells when it began."""

from __future__ import annotations

import time
from functools import cache

import redis

from office_tasks.celery_app import app
from office_tasks.execution.context import RunContext

BEGAN = "bench:began"


def tell(_context: RunContext) -> None:
    """Push the instant of this call, nanoseconds of the clock that all processes of a machine share."""
    _client().rpush(BEGAN, time.monotonic_ns())


@cache
def _client() -> redis.Redis:
    return redis.Redis.from_url(app.office.settings.broker_url.get_secret_value())
