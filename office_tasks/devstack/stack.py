"""Both servers under one supervisor and one data directory."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from office_tasks.devstack.lock import DirectoryLock
from office_tasks.devstack.postgres import Postgres
from office_tasks.devstack.redis import Redis


class DevStack:
    """PostgreSQL and Redis, started and stopped together.

    Args:
        data_dir: where their files stay, exclusively ours while we run; None for directories that `stop` removes.
        durable: as of `Postgres`.
        settings: as of `Postgres`.
    """

    def __init__(
        self, data_dir: Path | None = None, *, durable: bool = True, settings: Mapping[str, str] | None = None
    ) -> None:
        self._data_dir = data_dir
        self._lock: DirectoryLock | None = None
        self.postgres = Postgres(data_dir and data_dir / "postgres", durable=durable, settings=settings)
        self.redis = Redis(data_dir and data_dir / "redis")

    def start(self) -> Self:
        """Start both.

        Raises:
            DevStackError: one cannot start, or another stack runs on the directory; none is left running.
        """
        try:
            self._take_directory()
            self.postgres.start()
            self.redis.start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop both and give the directory back."""
        self.redis.stop()
        self.postgres.stop()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        """As `start`."""
        return self.start()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As `stop`."""
        self.stop()

    def _take_directory(self) -> None:
        if self._data_dir is None or self._lock is not None:
            return
        lock = DirectoryLock(self._data_dir.resolve())
        lock.acquire()
        self._lock = lock
