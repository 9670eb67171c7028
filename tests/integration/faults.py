"""Faults that a test arms in real workers, by a file that both see (see office_tasks.faults)."""

from __future__ import annotations

import sys
from pathlib import Path

from office_tasks import faults
from tests.nodes.waiting import until


class Fault:
    """One armed verb: `kill`, `pause` or `raise`."""

    def __init__(self, verb: str, token: Path) -> None:
        self.verb = verb
        self.token = token

    def at(self, point: str) -> str:
        """Return the setting that puts it at a fault point."""
        return f"{point}={self.verb}@{self.token}"

    def once(self) -> None:
        """Strike the next that passes."""
        self.token.touch()

    def always(self) -> None:
        """Strike all that pass."""
        self.token.mkdir()

    def off(self) -> None:
        """Let pass; whoever is paused goes on."""
        if self.token.is_dir():
            self.token.rmdir()
        else:
            self.token.unlink(missing_ok=True)

    def struck(self, timeout: float = 30) -> None:
        """Wait until somebody was killed or failed by it."""
        until(lambda: not self.token.exists(), timeout, f"{self.verb} struck")


def setting(*points: str) -> dict[str, str]:
    """Return the environment that arms the points."""
    return {"OFFICE_FAULT_POINTS": ",".join(points)}


def somebody_waits() -> bool:
    """Tell whether a thread of this process stands at a fault point."""
    return any(frame.f_code is faults._strike.__code__ for frame in sys._current_frames().values())
