"""Real workers for the measures that need them, over a Redis of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import redis
from celery import Celery, Task
from celery.result import AsyncResult
from pydantic import SecretStr

from bench.apps import ours
from bench.database import Office
from office_tasks.base import OfficeTask
from office_tasks.celery_app import OfficeApp
from office_tasks.configuration import configuration
from office_tasks.devstack import Redis
from office_tasks.devstack.orphans import end
from office_tasks.devstack.spawn import spawn
from office_tasks.ids import new_id
from office_tasks.office import Office as Root
from office_tasks.reasons import TASK_ASSIGNED
from office_tasks.settings import Settings
from office_tasks.tasks import queue_run

T = TypeVar("T")

READY_SECONDS = 120.0
STOP_SECONDS = 20.0
LOG_CHARACTERS = 2_000
# Workers of the same broker would otherwise tell each other how they are while we measure.
ALONE = ("--without-gossip", "--without-mingle")


class Caller:
    """A process that sends to our workers: the app with two of its tasks, and a client of its broker.

    Args:
        broker: the broker's URL.
        results: whether it waits for results; who does not subscribes to none.
    """

    def __init__(self, broker: str, *, results: bool = True) -> None:
        self.redis = redis.Redis.from_url(broker)
        self.app = OfficeApp("bench", task_cls=OfficeTask, set_as_current=False)
        self.app.office = Root(Settings(broker_url=SecretStr(broker)))
        backend = {} if results else {"result_backend": "disabled://"}
        self.app.add_defaults({**configuration(self.app.office.settings), **backend})
        self.queue_run = self.app.task(name=queue_run.name, bind=True)(queue_run.run)
        self.noop = self.app.task(name=ours.NOOP, base=Task)(ours.noop.run)

    def wake(self, made: Office) -> AsyncResult:
        """Send a keyed wake that no gate stops, by an agent: another task each time, the next of the agents."""
        agent, task = made.next_agent(), str(new_id())
        payload = {"task_id": task, "actor_type": "agent", "actor_id": "somebody"}
        return self.queue_run.delay(agent, TASK_ASSIGNED, payload, f"task_assigned:{task}:{agent}:1")

    def close(self) -> None:
        """Close its connections."""
        self.app.close()
        self.redis.close()


@contextmanager
def caller(broker: Redis, *, results: bool = True) -> Iterator[Caller]:
    """Yield a caller, closed afterwards."""
    made = Caller(broker.url, results=results)
    try:
        yield made
    finally:
        made.close()


def settings(made: Office, broker: Redis) -> dict[str, str]:
    """Return the environment of a worker on that database and broker; all else as it is shipped."""
    database = made.engine.url.render_as_string(hide_password=False)
    return {"OFFICE_DATABASE_URL": database, "OFFICE_BROKER_URL": broker.url, "OFFICE_RESULT_BACKEND": broker.url}


@contextmanager
def office_worker(name: str, app: str, words: Sequence[str], env: Mapping[str, str], broker: Redis) -> Iterator[int]:
    """Run `celery -A app worker`, known as `name`; yield its process id once it answers."""
    with python(name, ["-m", "celery", "-A", app, "worker", "-n", name, "-l", "INFO", *words], env, broker) as pid:
        yield pid


@contextmanager
def python(name: str, words: Sequence[str], env: Mapping[str, str], broker: Redis) -> Iterator[int]:
    """Run a worker known as `name` by this Python; yield its process id once it answers, and stop it afterwards."""
    log = broker.home / f"{name}.log"
    process = spawn(
        [sys.executable, *words],
        log=log,
        cwd=Path(__file__).parents[1],
        env={**_inherited(), **env},
        user=None,
        death=signal.SIGTERM,
    )
    try:
        _wait(name, process, log, broker)
        yield process.pid
    finally:
        end(process, STOP_SECONDS)


def until(condition: Callable[[], T], what: str, seconds: float = READY_SECONDS, gap: float = 0.005) -> T:
    """Return the first true value of `condition`.

    Raises:
        TimeoutError: there was none in that time.
    """
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not seen within {seconds:.0f} s")
        time.sleep(gap)
    return value


def _inherited() -> dict[str, str]:
    # No setting of whoever measures may reach a worker.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OFFICE_", "CELERY"))}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), kept.get("PYTHONPATH")])),
    }


def _wait(name: str, process: subprocess.Popen[bytes], log: Path, broker: Redis) -> None:
    with Celery("bench_ping", broker=broker.url, set_as_current=False) as app:

        def answered() -> bool:
            if process.poll() is not None:
                raise RuntimeError(f"{name} ended; its log ends with: {log.read_text()[-LOG_CHARACTERS:]}")
            return bool(app.control.ping(destination=[name], timeout=0.3, limit=1))

        until(answered, f"{name} answers")
