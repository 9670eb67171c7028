"""The demo's own workers and beat: real ones, as child processes that do not outlive it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import office_tasks
from office_tasks.demo import handler
from office_tasks.devstack.orphans import kill_tree, stop_orphans
from office_tasks.devstack.spawn import spawn

STOP_SECONDS: Final = 10
LOG_LINES: Final = 12


class CeleryProcess:
    """One `celery -A office_tasks …` with a directory of its own, by which one left behind is recognised.

    Args:
        name: of the directory and the log.
        words: what comes after `celery -A office_tasks`.
        data_dir: the demo's, whose lock is held.
        environment: over this process's own.
    """

    def __init__(self, name: str, words: Sequence[str], data_dir: Path, environment: Mapping[str, str]) -> None:
        self._name = name
        self._words = words
        self._home = data_dir.resolve() / name
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start it, in place of one that a killed demo may have left."""
        self.stop_left_over()
        self.log.unlink(missing_ok=True)
        self._process = spawn(
            [sys.executable, "-m", "celery", "-A", "office_tasks", *self._words],
            log=self.log,
            cwd=self._home,
            env={**os.environ, **self._environment, "PYTHONPATH": _path()},
            user=None,
            death=signal.SIGKILL,
        )
        return self

    def stop_left_over(self) -> None:
        """Stop one that a killed demo may have left."""
        self._home.mkdir(parents=True, exist_ok=True)
        stop_orphans(self._home, ("python", "Python"), signal.SIGTERM)

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it: warmly, or by force when that takes too long."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            kill_tree(self._process.pid)
            self._process.wait()

    @property
    def log(self) -> Path:
        """Its log."""
        return self._home / f"{self._name}.log"

    @property
    def runs(self) -> bool:
        """Whether it is alive."""
        return self._process is not None and self._process.poll() is None

    def last_words(self) -> str:
        """Return the end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_LINES:])


def worker(data_dir: Path, environment: Mapping[str, str]) -> CeleryProcess:
    """Return a worker that admits and recovers; what it admits stays queued."""
    return CeleryProcess("worker", _words("worker", "admission,recovery"), data_dir, environment)


def executor(data_dir: Path, environment: Mapping[str, str]) -> CeleryProcess:
    """Return a worker that executes what is queued, with the demo's handler."""
    handled = {**environment, "OFFICE_RUN_HANDLER": f"{handler.__name__}:{handler.work.__name__}"}
    return CeleryProcess("executor", _words("executor", "execution"), data_dir, handled)


def beat(data_dir: Path, environment: Mapping[str, str]) -> CeleryProcess:
    """Return a beat whose schedule file lies in its own directory."""
    words = ("beat", "--schedule=schedule", "--pidfile=", "--loglevel=INFO")
    return CeleryProcess("beat", words, data_dir, environment)


def _words(name: str, queues: str) -> list[str]:
    # Of two processes each; the two workers have nothing to tell each other.
    alone = ("--without-gossip", "--without-mingle")
    return ["worker", f"--hostname={name}@%h", "-c", "2", f"--queues={queues}", "--loglevel=INFO", *alone]


def _path() -> str:
    """Return where the child finds this very code, wherever it was started."""
    ours = str(Path(office_tasks.__file__).parents[1])
    return os.pathsep.join([ours, *filter(None, [os.environ.get("PYTHONPATH")])])
