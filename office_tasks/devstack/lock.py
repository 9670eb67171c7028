"""One living supervisor per data directory."""

import fcntl
import os
from pathlib import Path

from office_tasks.devstack.errors import DevStackError


class DirectoryLock:
    """An exclusive flock on `directory`/lock, released by the kernel however its holder dies."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock and write our pid into it.

        Raises:
            DevStackError: a living process holds it; the text names its pid.
        """
        if self._fd is not None:
            return
        fd = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode().strip() or "unknown"
            os.close(fd)
            raise DevStackError(
                f"{self._directory} is in use by a running stack (pid {holder}): stop that one "
                f"(Ctrl-C in its terminal, or `kill {holder}`) or choose another data directory"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._fd = fd

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
