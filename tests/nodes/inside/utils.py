"""What pytest-celery's `get_running_processes_info` imports "inside" a node: here, the processes of the node alone."""

from __future__ import annotations

import json
import os

import psutil

COLUMNS = ["pid", "name", "username", "cmdline", "cpu_percent", "memory_percent", "create_time"]


def get_running_processes_info(columns: list[str] | None = None) -> str:
    """Return the JSON list of the node's living processes, each with the `columns` of psutil asked for."""
    node = int(os.environ["NODE_PID"])
    processes = psutil.process_iter([*(columns or COLUMNS), "status"])
    return json.dumps([shown(process.info, columns) for process in processes if belongs(process, node)])


def belongs(process: psutil.Process, node: int) -> bool:
    """Tell whether a process is of the node's session and alive."""
    try:
        return os.getsid(process.pid) == node and process.info["status"] != psutil.STATUS_ZOMBIE
    except ProcessLookupError:
        return False


def shown(info: dict[str, object], columns: list[str] | None) -> dict[str, object]:
    """Return only what was asked for."""
    return {name: info[name] for name in columns or COLUMNS}
