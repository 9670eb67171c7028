"""The process nodes' counterpart of the Docker engine: starts nodes, keeps their logs, ends them."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.nodes.forked import Nursery
from tests.nodes.handle import ProcHandle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[2]


class Reaper:
    """A guard process that kills the listed process groups when this process is gone (see reaper.py)."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("reaper.py")
        command = [sys.executable, "-I", "-S", str(script)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        assert self._process.stdin is not None
        self._pipe = self._process.stdin

    def add(self, group: int) -> None:
        self._tell(f"+{group}\n")

    def discard(self, group: int) -> None:
        self._tell(f"-{group}\n")

    def _tell(self, line: str) -> None:
        with suppress(BrokenPipeError):
            self._pipe.write(line.encode())
            self._pipe.flush()

    def close(self) -> None:
        """End the guard: not by closing the pipe alone, which a forked child of a test may hold open too."""
        self._pipe.close()
        self._process.terminate()
        self._process.wait(timeout=10)


class ProcEngine:
    """Runs nodes as processes and removes every one of them at `close`.

    Args:
        directory: where logs and working files go; it outlives the nodes, so a failed test can show their logs.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.handles: list[ProcHandle] = []
        self._reaper = Reaper()
        self._nursery: Nursery | None = None

    def run(
        self, command: Sequence[str], *, name: str, env: Mapping[str, str], nursery: Nursery | None = None
    ) -> ProcHandle:
        """Start `command` from the repository's root and return its handle; it need not be ready yet."""
        handle = ProcHandle(
            command, name=name, env=env, cwd=ROOT, logs=self.directory, guard=self._reaper, nursery=nursery
        )
        self.handles.append(handle)
        handle.start()
        return handle

    def nursery(self, env: Mapping[str, str]) -> Nursery:
        """Return what forks the workers of this engine, made for the first one's environment."""
        if self._nursery is None:
            self._nursery = Nursery(env, ROOT)
            self._reaper.add(self._nursery.pid)
        return self._nursery

    def remove(self, handle: ProcHandle) -> None:
        """Kill the node and forget it. Its log stays in `directory`."""
        handle.remove()
        if handle in self.handles:
            self.handles.remove(handle)

    def close(self) -> None:
        """Kill what is left."""
        for handle in list(self.handles):
            self.remove(handle)
        if self._nursery is not None:
            self._nursery.close()
            self._reaper.discard(self._nursery.pid)
        self._reaper.close()
