"""The near side of nursery.py: processes that it forks, as far as a node asks one of `subprocess`."""

from __future__ import annotations

import json
import subprocess
import sys
from threading import Lock
from typing import TYPE_CHECKING, Any

from tests.nodes.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# What nobody reads before our modules and the tests' own are imported.
OURS = ("OFFICE_", "HANDLER_DIRECTORY", "CANARY_TEXT", "TMPDIR")


class Nursery:
    """The process that forks, for workers whose environment is its own but for what is ours.

    Attributes:
        pid: id of the process and of its group.
    """

    def __init__(self, env: Mapping[str, str], cwd: Path) -> None:
        self._env, self._cwd, self._lock = _without_ours(env), cwd, Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.nodes.nursery"],
            cwd=cwd,
            env=self._env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pid = self._process.pid

    def takes(self, command: Sequence[str], env: Mapping[str, str], cwd: Path) -> bool:
        """Tell whether a process forked here is what that command would start."""
        return list(command[:2]) == [sys.executable, "-m"] and (_without_ours(env), cwd) == (self._env, self._cwd)

    def start(self, command: Sequence[str], env: Mapping[str, str], log: Path) -> Forked:
        """Start `python -m …`, in a session of its own; what it says is appended to the log."""
        words = list(command[2:])
        return Forked(self, self.ask(words=words, env=dict(env), cwd=str(self._cwd), log=str(log)), command)

    def ask(self, **order: Any) -> Any:
        """Give an order and return the answer."""
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End it; whom it forked, it does not end."""
        self._process.kill()
        self._process.communicate()


class Forked:
    """A process that the nursery forked."""

    def __init__(self, nursery: Nursery, pid: int, command: Sequence[str]) -> None:
        self.pid, self._nursery, self._command = pid, nursery, command
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, -n after signal n; None while it runs."""
        if self._code is None:
            self._code = self._nursery.ask(pid=self.pid)
        return self._code

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for its end; `subprocess.TimeoutExpired` after `timeout` seconds."""
        try:
            until(lambda: self.poll() is not None, timeout or float("inf"))
        except TimeoutError:
            raise subprocess.TimeoutExpired(self._command, timeout or 0) from None
        return self._code


def _without_ours(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if not name.startswith(OURS)}
