"""One living supervisor per data directory."""

import fcntl
import os
import shutil
from pathlib import Path

from office_tasks.devstack.errors import DevStackError

LOCK = "lock"


class DirectoryLock:
    """An exclusive flock on `directory`/lock, released by the kernel however its holder dies."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._fd: int | None = None

    def acquire(self) -> None:
        """Make the directory if need be, take the lock and write our pid into it.

        Raises:
            DevStackError: a living process holds it (the text names its pid), or we may not write there.
        """
        if self._fd is not None:
            return
        fd = self._open()
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

    def _open(self) -> int:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            return os.open(self._directory / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise DevStackError(
                f"cannot write to {self._directory} ({error.strerror}): remove it as the user who made it, "
                "or choose another data directory"
            ) from error


def remove_if_abandoned(directory: Path) -> None:
    """Remove a directory of ours that has a lock file which nobody holds any more."""
    try:
        if directory.lstat().st_uid != os.geteuid():
            return
        fd = os.open(directory / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if not os.pread(fd, 1, 0):  # its maker is about to take it: the pid is written under the lock
            return
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory, ignore_errors=True)
    except BlockingIOError:
        pass
    finally:
        os.close(fd)
