"""A Celery app for the tests of the nodes: late acknowledgement, quick redelivery, tasks that can be held."""

from __future__ import annotations

import os

from celery import Celery
from redis import Redis

app = Celery("selftest", broker=os.environ["OFFICE_BROKER_URL"], backend=os.environ["OFFICE_RESULT_BACKEND"])
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        "visibility_timeout": 2,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
        "socket_timeout": 5,
    },
)


@app.task(name="selftest.pid")
def pid(marker: str = "") -> int:
    """Return the process that ran it."""
    return os.getpid()


@app.task(name="selftest.env")
def env(name: str) -> str | None:
    """Return a variable of the worker's environment."""
    return os.environ.get(name)


@app.task(name="selftest.hold")
def hold(name: str) -> str:
    """Say in the backend that `name` began, and end when told so: `RPUSH go:<name>`."""
    with Redis.from_url(os.environ["OFFICE_RESULT_BACKEND"], socket_timeout=None) as redis:
        redis.rpush(f"began:{name}", os.getpid())
        redis.blpop([f"go:{name}"], timeout=30)
    return name
