"""The life of one server process: start, stop, kill, restart, each on the port it had."""

import atexit
import os
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from office_tasks.devstack import ports, privilege
from office_tasks.devstack.errors import DevStackError
from office_tasks.devstack.lock import DirectoryLock
from office_tasks.devstack.orphans import kill_tree, stop_orphans
from office_tasks.devstack.spawn import spawn

READY_SECONDS = 30.0
STOP_SECONDS = 10.0
POLL_SECONDS = 0.02
PORT_RACES = 5
LOG_LINES = 12


class Server(ABC):
    """A server that this process owns, on the loopback address.

    Use it as a context manager, or call `start` and `stop`. A child made by fork must not call its verbs; its `stop`
    does nothing.
    """

    program: ClassVar[str]
    stop_signal: ClassVar[signal.Signals]
    death_signal: ClassVar[signal.Signals]

    def __init__(self, data_dir: Path | None = None, port: int | None = None) -> None:
        self._data_dir = data_dir
        self._port = port
        self._home: Path | None = None
        self._lock: DirectoryLock | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()

    @property
    def port(self) -> int:
        """The TCP port; the same across restarts.

        Raises:
            DevStackError: the server was never started and no port was asked for.
        """
        if self._port is None:
            raise DevStackError(f"{self.program} has no port before its first start: call start()")
        return self._port

    @property
    def pid(self) -> int | None:
        """The server's process id, None while it is down."""
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def log(self) -> Path:
        """The server's own log."""
        return self.home / f"{self.program}.log"

    @property
    def home(self) -> Path:
        """The directory of all its files.

        Raises:
            DevStackError: it is not started.
        """
        if self._home is None:
            raise DevStackError(f"{self.program} is not started: call start()")
        return self._home

    def start(self) -> Self:
        """Start it and wait until it answers; nothing when it runs already.

        Raises:
            DevStackError: it cannot; the text says why and what to do.
        """
        if self.pid is not None:
            return self
        try:
            self._open_home()
            self._prepare()
            self._launch()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop it cleanly, release its directory, and remove that when it was a temporary one."""
        if os.getpid() != self._owner:
            return
        self._halt()
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        if self._home is not None and self._data_dir is None:
            shutil.rmtree(self._home, ignore_errors=True)
        self._home = None
        atexit.unregister(self.stop)

    def kill(self) -> None:
        """SIGKILL all its processes; its files and port stay, for `start`."""
        if self._process is not None:
            kill_tree(self._process.pid)
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Stop it cleanly and start it again on the same port and files."""
        self._halt()
        self.start()

    def __enter__(self) -> Self:
        """As `start`."""
        return self.start()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As `stop`."""
        self.stop()

    @property
    @abstractmethod
    def _directory(self) -> Path:
        """Its working directory, by which orphans are recognised."""

    @abstractmethod
    def _prepare(self) -> None:
        """Make its files ready for a start."""

    @abstractmethod
    def _command(self, port: int) -> list[str | Path]:
        """What to run."""

    @abstractmethod
    def _answers(self, port: int, pid: int) -> bool:
        """Whether the process `pid`, and no other, answers on `port`."""

    def _user(self) -> str | None:
        return None

    def _open_home(self) -> None:
        if self._home is not None:
            return
        if self._data_dir is None:
            self._home = privilege.temporary_home()
        else:
            self._home = self._data_dir.resolve()
        self._lock = DirectoryLock(self._home)
        self._lock.acquire()
        self.log.unlink(missing_ok=True)
        atexit.register(self.stop)

    def _stop_orphans(self) -> None:
        stop_orphans(self._directory, (self.program,), self.stop_signal)

    def _launch(self) -> None:
        if self._port is not None and not ports.is_free(self._port):
            raise DevStackError(
                f"port {self._port} of {self.program} is taken: stop who listens there (`lsof -i :{self._port}`)"
            )
        for _ in range(PORT_RACES):
            port = self._port or ports.pick()
            if self._try(port):
                self._port = port
                return
        raise DevStackError(f"{self.program} lost the race for a port {PORT_RACES} times: start again")

    def _try(self, port: int) -> bool:
        """Start on `port`; False when another process took a port of our choosing first."""
        self._process = self._spawn(self._command(port), self._directory, self.death_signal)
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if ended(self._process, POLL_SECONDS):
                if self._port is None and not ports.is_free(port):
                    return False
                raise DevStackError(f"{self.program} ended while starting{self._last_words()}")
            if self._answers(port, self._process.pid):
                return True
        raise DevStackError(f"{self.program} did not answer within {READY_SECONDS:.0f} s{self._last_words()}")

    def _spawn(self, command: list[str | Path], cwd: Path, death: signal.Signals) -> subprocess.Popen[bytes]:
        return spawn(command, log=self.log, cwd=cwd, env=_clean_environment(), user=self._user(), death=death)

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-LOG_LINES:] if self.log.exists() else []
        return "".join(["; the end of its log:", *(f"\n  {line}" for line in lines)]) if lines else "; its log is empty"

    def _halt(self) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(self.stop_signal)
        if ended(self._process, STOP_SECONDS):
            self._process = None
        else:
            self.kill()


def ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether it ended within that time."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _clean_environment() -> dict[str, str]:
    """Ours without what would redirect a server, in a locale that every system has."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}
