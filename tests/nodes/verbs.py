"""What tests do to nodes beyond pytest-celery's own verbs, the same on processes and containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.nodes.waiting import until

if TYPE_CHECKING:
    from pytest_celery import CeleryTestNode, CeleryTestWorker


def pause(node: CeleryTestNode) -> None:
    """Freeze a node: its connections stay open and nothing answers."""
    node.container._container.pause()


def resume(node: CeleryTestNode) -> None:
    """Let a frozen node go on."""
    node.container._container.unpause()


def pool_pids(worker: CeleryTestWorker) -> list[int]:
    """Return the ids of a prefork worker's children, as numbered inside the node."""
    parents = {info["pid"]: info["ppid"] for info in worker.get_running_processes_info(["pid", "ppid"])}
    return sorted(pid for pid, parent in parents.items() if parent in parents)


def kill_child(worker: CeleryTestWorker, pid: int | None = None) -> int:
    """SIGKILL one child of the pool (the oldest unless told) and return its id."""
    victim = pid or pool_pids(worker)[0]
    code, output = worker.container.exec_run(f"python -c 'import os; os.kill({victim}, 9)'")
    if code != 0:
        raise RuntimeError(f"could not kill {victim}: {output!r}")
    return victim


def wait_exit(node: CeleryTestNode, timeout: float = 30) -> int:
    """Wait until a node has ended; return its exit code (128 + n after signal n)."""
    code: int = node.container._container.wait(timeout=timeout)["StatusCode"]
    return code


def wait_for_log(node: CeleryTestNode, text: str, timeout: float = 30, *, after: int = 0) -> str:
    """Wait until a node logs `text` beyond the `after`th character; return the log from there.

    Like the node's own `wait_for_log`, which looks only once a second. `after=len(node.logs())` waits for news.
    """
    return until(lambda: log if text in (log := node.logs()[after:]) else "", timeout, f"{node.name()} logs {text!r}")
