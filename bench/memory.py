"""P10: what an idle worker holds, beside a bare Celery worker in which SQLAlchemy is imported."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import psutil

from bench.apps import bare
from bench.database import Office, office
from bench.result import Result
from bench.scale import Scale
from bench.workers import ALONE, Caller, caller, office_worker, python, settings
from office_tasks.devstack import Postgres, Redis

POOL = ("-P", "prefork", "-c", "1")
PATIENCE_SECONDS = 60
OURS, BARE, WITHOUT_FLOWER = "office", "bare", "bare without Celery's command line"


def idle(server: Postgres, scale: Scale) -> Iterator[Result]:
    """P10: workers of one process each, alive together, after a task each."""
    with office(server) as made, Redis() as broker, caller(broker) as sender:
        seen = [_megabytes(made, broker, sender) for _ in range(scale.memories)]
    for against in (BARE, WITHOUT_FLOWER):
        rounds = [each[OURS] / each[against] for each in seen]
        detail = {f"{name}, MB": [round(each[name], 1) for each in seen] for name in (OURS, against)}
        yield Result("P10", f"against {against}", statistics.median(rounds), 1.3, detail=detail)


def _megabytes(made: Office, broker: Redis, sender: Caller) -> dict[str, float]:
    env = settings(made, broker)
    words = [*POOL, *ALONE]
    with (
        office_worker("ours@bench", "office_tasks", words, env, broker) as ours,
        office_worker("bare@bench", "bench.apps.bare", [*words, "-Q", "bare"], env, broker) as plain,
        python("lone@bench", ["-m", "bench.apps.bare", "lone@bench"], env, broker) as lone,
    ):
        sender.wake(made).get(timeout=PATIENCE_SECONDS)
        for queue in ("bare", "celery"):
            sender.app.send_task(bare.NOOP, queue=queue).get(timeout=PATIENCE_SECONDS)
        return {OURS: _held(ours), BARE: _held(plain), WITHOUT_FLOWER: _held(lone)}


def _held(pid: int) -> float:
    """Return the megabytes that a worker's main process and its children hold, a page that they share counted once.

    Proportional set size: their resident sizes would count twice what a forked child has in common with its parent.
    """
    parent = psutil.Process(pid)
    processes = [parent, *parent.children(recursive=True)]
    if len(processes) != 2:
        raise AssertionError(f"a worker of one process has {len(processes) - 1} children")
    return float(sum(process.memory_full_info().pss for process in processes) / 1e6)
