"""`ProcHandle`: a process that quacks like docker's `Container`, as far as pytest-celery asks."""

from __future__ import annotations

import os
import secrets
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import psutil

from tests.nodes.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.nodes.forked import Forked, Nursery

INSIDE = Path(__file__).with_name("inside")


class Guard(Protocol):
    """Who kills the groups of this process should it die first."""

    def add(self, group: int) -> None: ...

    def discard(self, group: int) -> None: ...


class ExecResult(NamedTuple):
    """What `exec_run` answers, as docker's."""

    exit_code: int
    output: bytes


class ProcHandle:
    """One node: a main process, leader of its own session and process group, and what it forked.

    As in a container, the whole group dies with the main process, `%h` in the command is the first 12 digits of the
    node's id, the log spans restarts and exit codes of signals are 128 + n.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        name: str,
        env: Mapping[str, str],
        cwd: Path,
        logs: Path,
        guard: Guard,
        nursery: Nursery | None = None,
    ) -> None:
        self.id = secrets.token_hex(32)
        self.name = f"{name}-{self.id[:12]}"
        self.command = [word.replace("%h", self.id[:12]) for word in command]
        self._env = dict(env)
        self._cwd = cwd
        self._log = logs / f"{self.name}.log"
        self._log.touch()
        self._guard = guard
        self._nursery = nursery if nursery and nursery.takes(self.command, self._env, cwd) else None
        self._process: subprocess.Popen[bytes] | Forked | None = None
        self._log_start = 0
        self._paused = False
        self._buried = False

    @property
    def pid(self) -> int:
        """Id of the main process (and of the group), also after its end."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; 128 + n when signal n ended it."""
        code = self._process.poll() if self._process else None
        return 128 - code if code is not None and code < 0 else code

    @property
    def status(self) -> str:
        """Docker's word: created, running, paused or exited."""
        if self._process is None:
            return "created"
        if self.exit_code is not None:
            self._bury()
            return "exited"
        return "paused" if self._paused else "running"

    @property
    def attrs(self) -> dict[str, Any]:
        """The part of docker's inspection that pytest-celery and pytest-docker-tools read."""
        return {
            "Id": self.id,
            "Name": self.name,
            "Config": {
                "Hostname": "127.0.0.1",
                "Cmd": self.command,
                "Env": [f"{key}={value}" for key, value in self._env.items()],
            },
            "State": {"Status": self.status, "Pid": self.pid, "ExitCode": self.exit_code},
            "NetworkSettings": {"Networks": {}, "Ports": {}},
            "HostConfig": {"PortBindings": {}},
        }

    def start(self) -> None:
        """Start the main process, again if it ended; the log goes on."""
        self._log_start = self._log.stat().st_size
        self._paused = self._buried = False
        self._process = self._nursery.start(self.command, self._env, self._log) if self._nursery else self._popen()
        self._guard.add(self.pid)

    def _popen(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self.command,
                cwd=self._cwd,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def logs(self) -> bytes:
        """Everything written since the node was made, restarts included."""
        return self._log.read_bytes()

    def logs_since_start(self) -> str:
        """What the present run wrote."""
        return self.logs()[self._log_start :].decode(errors="replace")

    def reload(self) -> None:
        """Look at the process; nothing is cached, so this only buries the dead."""
        self.status  # noqa: B018 -- the property is the look

    def kill(self, name: str | int | None = None) -> None:
        """Signal the main process; SIGKILL (the default) ends the whole group and is waited for, as in a container."""
        number = signal_number(name)
        if self.status == "exited":
            return
        if number != signal.SIGKILL:
            os.kill(self.pid, number)
            return
        self._signal_group(signal.SIGKILL)
        self.wait(timeout=10)
        until(lambda: not self.pids(), 10, f"the processes of {self.name} gone")

    def wait(self, timeout: float | None = None) -> dict[str, int | None]:
        """Wait for the main process to end; `subprocess.TimeoutExpired` after `timeout` seconds."""
        if self._process is not None:
            self._process.wait(timeout)
            self._bury()
        return {"StatusCode": self.exit_code}

    def stop(self, timeout: float = 10) -> None:
        """SIGTERM, and SIGKILL after `timeout` seconds."""
        if self.status == "exited":
            return
        self.kill("SIGTERM")
        try:
            self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def restart(self, timeout: float = 10) -> None:
        """Stop it if it runs, start it."""
        self.stop(timeout)
        self.start()

    def pause(self) -> None:
        """Freeze the group (SIGSTOP): connections stay open and nothing answers."""
        self._paused = True
        self._signal_group(signal.SIGSTOP)

    def unpause(self) -> None:
        """Let it go on."""
        self._signal_group(signal.SIGCONT)
        self._paused = False

    def pids(self) -> list[int]:
        """Ids of the node's living processes, the main one first."""
        return sorted((pid for pid in psutil.pids() if self._owns(pid)), key=lambda pid: (pid != self.pid, pid))

    def exec_run(self, cmd: str | list[str], **_options: object) -> ExecResult:
        """Run a command beside the node, with its environment, and wait for it (at most a minute)."""
        words = shlex.split(cmd) if isinstance(cmd, str) else cmd
        path = os.pathsep.join([str(Path(sys.executable).parent), self._env.get("PATH", os.defpath)])
        python_path = os.pathsep.join([str(INSIDE), self._env.get("PYTHONPATH", "")])
        env = {**self._env, "PATH": path, "PYTHONPATH": python_path, "NODE_PID": str(self.pid)}
        done = subprocess.run(
            ["/usr/bin/env", *words],  # env looks the program up in the PATH given here
            cwd=self._cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False,
        )  # fmt: skip
        return ExecResult(done.returncode, done.stdout)

    def remove(self, **_options: object) -> None:
        """Kill it if it lives."""
        if self._process is not None:
            self.kill()

    def _owns(self, pid: int) -> bool:
        try:
            return os.getsid(pid) == self.pid and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except (ProcessLookupError, psutil.NoSuchProcess):
            return False

    def _signal_group(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _bury(self) -> None:
        """Kill what the main process left behind, once: later the group's id may be somebody else's."""
        if self._buried:
            return
        self._buried = True
        self._signal_group(signal.SIGKILL)
        self._guard.discard(self.pid)


def signal_number(name: str | int | None) -> int:
    """Return the number of "SIGTERM", "TERM" or 15; that of SIGKILL for None."""
    if name is None:
        return signal.SIGKILL
    if isinstance(name, int):
        return name
    return signal.Signals[name if name.startswith("SIG") else f"SIG{name}"]
