"""The worker that a replay pushes its messages to: one that runs already, or one of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from celery import Celery
from kombu.exceptions import OperationalError
from pydantic import SecretStr

from office_tasks.configuration import configuration
from office_tasks.replay.errors import ReplayError
from office_tasks.settings import Settings

CONCURRENCY: Final = 2
READY_SECONDS: Final = 60
STOP_SECONDS: Final = 20
NOBODY: Final = (
    "no worker answers on the broker: start one on the same database with `celery -A office_tasks worker -c 2`, or"
    " unset OFFICE_BROKER_URL to let the replay start its own"
)


def client(settings: Settings) -> Celery:
    """Return an app that sends by name, as a program that does not import us would."""
    app = Celery("office_replay", set_as_current=False)
    app.conf.update(configuration(settings))
    return app


def answers(app: Celery, seconds: float) -> bool:
    """Tell whether any worker answers within so many seconds.

    Raises:
        ReplayError: the broker does not.
    """
    try:
        return bool(app.control.ping(timeout=seconds, limit=1))
    except (OperationalError, OSError) as error:
        raise ReplayError(f"the broker does not answer: {error}") from None


@contextmanager
def own_worker(database_url: str, log_level: str) -> Iterator[Celery]:
    """Run Redis and a worker for as long as the replay lasts; yield the app that sends to it.

    Raises:
        DevStackError: Redis cannot be started.
        ReplayError: the worker did not come up; the end of its log says why.
    """
    from office_tasks.devstack import Redis  # noqa: PLC0415 - an extra, needed only here
    from office_tasks.devstack.orphans import end  # noqa: PLC0415 - as above

    with Redis() as redis:
        app = client(Settings(broker_url=SecretStr(redis.url), result_backend=SecretStr(redis.url)))
        process = _start(database_url, redis.url, redis.home / "worker.log", log_level)
        try:
            _wait(app, process, redis.home / "worker.log")
            yield app
        finally:
            end(process, STOP_SECONDS)
            app.close()


def _start(database_url: str, broker_url: str, log: Path, log_level: str) -> subprocess.Popen[bytes]:
    from office_tasks.devstack.spawn import spawn  # noqa: PLC0415 - an extra, needed only here

    command = [sys.executable, "-m", "celery", "-A", "office_tasks.replay.quiet", "worker", "-c", str(CONCURRENCY)]
    settings = {
        "OFFICE_DATABASE_URL": database_url,
        "OFFICE_BROKER_URL": broker_url,
        "OFFICE_RESULT_BACKEND": broker_url,
        "OFFICE_CONCURRENCY": str(CONCURRENCY),
        "OFFICE_LOG_LEVEL": log_level,
    }
    return spawn(
        [*command, "-n", "replay@%h", "--without-gossip", "--without-mingle"],
        log=log,
        cwd=Path.cwd(),
        env={**os.environ, **settings},
        user=None,
        death=signal.SIGTERM,
    )


def _wait(app: Celery, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not answers(app, 0.5):
        if process.poll() is not None or time.monotonic() > deadline:
            raise ReplayError(
                f"the worker did not come up; its log ends with: {log.read_text(errors='replace')[-1000:]}"
            )
