"""The worker node: how a test asks for one, its command, and the node as a process."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_celery import CeleryWorkerContainer

from tests.nodes.engine import ROOT
from tests.nodes.ready import ProcReady

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.nodes.engine import ProcEngine

# Of the environment of pytest, what would make a worker depend on who runs it.
NOT_INHERITED = ("OFFICE_", "CELERY_", "PYTEST_", "PROMETHEUS_MULTIPROC_DIR", "REMAP_SIGTERM")


@dataclass(frozen=True)
class WorkerOptions:
    """What a test may choose of its worker.

    Attributes:
        concurrency: children or threads (`-c`).
        pool: prefork, threads or solo (`-P`).
        queues: comma-separated (`-Q`); None consumes what the app declares.
        env: environment on top of `office_env`.
        args: further arguments; the default leaves out mingle, which waits a second at each start.
        log_level: of the worker.
    """

    concurrency: int = 2
    pool: str = "prefork"
    queues: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    args: Sequence[str] = ("--without-gossip", "--without-mingle")
    log_level: str = "INFO"

    def command(self, app: str, name: str) -> list[str]:
        """Return the command of a worker of `app`; `%h` is the node's host name, its id in both modes."""
        queues = ["-Q", self.queues] if self.queues else []
        return [
            *("celery", "-A", app, "worker", "-P", self.pool, "-c", str(self.concurrency)),
            *("-n", f"{name}@%h", "--loglevel", self.log_level, *queues, *self.args),
        ]


class ProcWorker(ProcReady, CeleryWorkerContainer):
    """A Celery worker in a process group of its own, running the app of the repository."""


def run_worker(engine: ProcEngine, command: Sequence[str], env: Mapping[str, str]) -> ProcWorker:
    """Start `python -m celery …` from the repository's root, without waiting for it.

    It is forked from a process that has what each worker imports, unless its environment is another one's.
    """
    words = [sys.executable, "-m", *command]
    return ProcWorker(engine.run(words, name="worker", env={**inherited(), **env}, nursery=engine.nursery(inherited())))


def inherited() -> dict[str, str]:
    """Return the environment every process node starts from."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)}
    path = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
    return {**kept, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
