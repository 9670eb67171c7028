"""Counters of several processes, added up: each writes a file of its own, the worker's main process reads them all.

The file format and the merging are those of prometheus_client's multiprocess mode. Its switch is not used: that is an
environment variable which must be set before anything imports prometheus_client (Celery's command line does, by way of
Flower, before it imports the app), and which every program that a handler starts would inherit (decision 18).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any, Final

from prometheus_client import Counter
from prometheus_client.metrics_core import Metric
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

FILE_BYTES: Final = 1 << 16
_ENDED: Final = "counter_ended.db"

_stores: weakref.WeakSet[Store] = weakref.WeakSet()


class Store:
    """The counters of one worker: a directory, in it a file for each process that counted something.

    Args:
        directory: the worker's own, empty.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._file: MmapedDict | None = None
        self._lock = Lock()
        _stores.add(self)

    def add(self, key: str, amount: float) -> None:
        """Add to this process's share of a counter. A file that cannot be made loses the count, and nothing else."""
        with self._lock, contextlib.suppress(OSError):
            self._file = self._file or make_file(self.directory / f"counter_{os.getpid()}.db")
            value, _ = self._file.read_value(key)
            self._file.write_value(key, value + amount, 0.0)

    def share(self, key: str) -> float:
        """Return this process's share of a counter."""
        with self._lock:
            return self._file.read_value(key)[0] if self._file else 0.0

    def after_fork(self) -> None:
        """Leave the parent's file, and its lock, which a thread of the parent may have held."""
        self._lock = Lock()
        self.close()

    def close(self) -> None:
        """Close this process's file; the next count opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _after_fork() -> None:
    for store in list(_stores):
        store.after_fork()


os.register_at_fork(after_in_child=_after_fork)


def make_file(path: Path) -> MmapedDict:
    """Open a process's file; written in full first, so that a full disk is an error here and no signal later."""
    if not path.exists():
        path.write_bytes(bytes(FILE_BYTES))
    return MmapedDict(str(path))


class SharedValue:
    """What `Counter` asks of a value, kept in a store."""

    def __init__(self, store: Store, key: str) -> None:
        self._store = store
        self._key = key
        store.add(key, 0.0)

    def inc(self, amount: float) -> None:
        """Add to it."""
        self._store.add(self._key, amount)

    def get(self) -> float:
        """Return this process's share."""
        return self._store.share(self._key)

    def get_exemplar(self) -> None:
        """Return none: they are not shared."""


class SharedCounter(Counter):
    """A counter of this process alone, until `share` gives all of them a store."""

    store: Store | None = None

    def _metric_init(self) -> None:
        super()._metric_init()
        if self.store is not None:
            labels = list(self._labelnames), list(self._labelvalues)
            key = mmap_key(self._name, f"{self._name}_total", *labels, self._documentation)
            self._value: Any = SharedValue(self.store, key)


class SharedCounters(Collector):
    """The totals over all processes of a worker, those that ended included. They never go down while it lives."""

    def __init__(self, store: Store) -> None:
        self._directory = store.directory
        self._ended = make_file(store.directory / _ENDED)
        self._lock = Lock()

    def describe(self) -> Iterable[Metric]:
        """Name nothing: what was counted names itself."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Add up all files."""
        with self._lock:
            for left in self._left_behind():
                self._take_over(left)
            files = [str(path) for path in self._directory.glob("counter_*.db") if path.stat().st_size]
            merged: Iterable[Metric] = MultiProcessCollector.merge(files)
            return merged

    def close(self) -> None:
        """Close the file of what ended."""
        self._ended.close()

    def _left_behind(self) -> Iterator[Path]:
        for path in self._directory.glob("counter_*.db"):
            if path.name != _ENDED and not _lives(int(path.stem.partition("_")[2])):
                yield path

    def _take_over(self, left: Path) -> None:
        """Keep what an ended process counted, and drop its file: a worker may outlive thousands of its children."""
        if left.stat().st_size:
            for key, value, _, _ in MmapedDict.read_all_values_from_file(str(left)):
                before, _ = self._ended.read_value(key)
                self._ended.write_value(key, before + value, 0.0)
        left.unlink()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class OwnDirectory:
    """A directory of this process, new and empty. It goes with the process; what a killed one left goes with the next.

    Whether its owner lives is told by a lock and not by a process id, which containers that share a disk may have in
    common.

    Raises:
        OSError: it cannot be made, or somebody else could write there.
    """

    def __init__(self, parent: Path | None = None) -> None:
        base = parent or Path(tempfile.gettempdir()) / f"office-metrics-{os.getuid()}"
        base.mkdir(mode=0o700, exist_ok=True)
        if base.is_symlink() or base.stat().st_uid != os.getuid() or base.stat().st_mode & 0o022:
            raise PermissionError(f"{base} must be a directory of this user that nobody else may write to")
        with _locked(base / "lock", fcntl.LOCK_EX):
            for other in base.glob("worker-*"):
                _remove_unless_used(other)
            self.path = Path(tempfile.mkdtemp(prefix="worker-", dir=base))
            self._lock = _lock(self.path / "lock", fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _remove_unless_used(directory: Path) -> None:
    with contextlib.suppress(OSError), _locked(directory / "lock", fcntl.LOCK_EX | fcntl.LOCK_NB):
        shutil.rmtree(directory, ignore_errors=True)


def _lock(path: Path, how: int) -> int:
    held = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(held, how)
    except OSError:
        os.close(held)
        raise
    return held


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    held = _lock(path, how)
    try:
        yield
    finally:
        os.close(held)
