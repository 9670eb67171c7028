"""Servers of ours that outlived their supervisor, recognised by their working directory."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from office_tasks.devstack.errors import DevStackError

GRACE_SECONDS = 10.0
POLL_SECONDS = 0.01


def stop_orphans(directory: Path, names: tuple[str, ...], ask: signal.Signals) -> None:
    """Stop every process whose name starts with one of `names` and that works in `directory`; touch no other.

    Call it with the directory's lock held: then whoever started them is gone.

    Args:
        directory: the server's data directory, resolved.
        names: how the programs' names start.
        ask: the signal by which that server shuts down cleanly and soon.

    Raises:
        DevStackError: one of them is still there after SIGKILL.
    """
    found = [process for process in psutil.process_iter(["name", "cwd", "ppid"]) if _is_ours(process, directory, names)]
    for process in _roots(found):
        _unless_gone(process.resume)
        _unless_gone(process.send_signal, ask)
    for process in _wait(found):
        _unless_gone(process.kill)
    if alive := _wait(found):
        pids = " ".join(str(process.pid) for process in alive)
        raise DevStackError(f"a server of a dead stack still runs on {directory}: stop it with `kill -9 {pids}`")


def end(process: subprocess.Popen[bytes], grace_seconds: float) -> None:
    """Ask a child of ours to end, and kill it with all its descendants when it has not within the grace."""
    process.terminate()
    try:
        process.wait(grace_seconds)
    except subprocess.TimeoutExpired:
        kill_tree(process.pid)
        process.wait()


def kill_tree(pid: int) -> None:
    """SIGKILL the process and all its descendants, the parent held still so that it cannot replace them."""
    try:
        parent = psutil.Process(pid)
        parent.suspend()
        children = parent.children(recursive=True)
    except psutil.NoSuchProcess:
        return
    for process in (*children, parent):
        _unless_gone(process.kill)
    _wait(children)


def _is_ours(process: psutil.Process, directory: Path, names: tuple[str, ...]) -> bool:
    # Both values are None for a process that we may not look into: not one that we started.
    found, cwd = process.info["name"], process.info["cwd"]
    return bool(found and cwd) and found.startswith(names) and Path(cwd) == directory


def _roots(found: list[psutil.Process]) -> list[psutil.Process]:
    """Those that no other one of them started: a server's own children follow it."""
    pids = {process.pid for process in found}
    return [process for process in found if process.info["ppid"] not in pids]


def _wait(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Wait until they ended; those still alive after the grace."""
    deadline = time.monotonic() + GRACE_SECONDS
    while (alive := [process for process in processes if _lives(process)]) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return alive


def _lives(process: psutil.Process) -> bool:
    """A zombie does not: it holds nothing any more, and who must reap it (init, in a container) may take its time."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _unless_gone(act: Callable[..., object], *args: object) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        act(*args)
