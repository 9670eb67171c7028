"""Forks workers that have what everybody imports, and nothing of ours, so that each start imports only that.

A process of its own, without threads. It reads one order a line: `{"words": …, "cwd": …, "env": …, "log": …}` is
answered by the id of a new process, which does what `python -m <words>` does, and `{"pid": …}` by its exit code, null
while it runs.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import sys
from importlib import import_module
from typing import Any

# What a worker imports whatever it is told; Celery's command itself brings Flower.
COMMON = (
    *("celery.bin.celery", "celery.worker.consumer", "celery.worker.control", "celery.backends.redis"),
    *("celery.concurrency.prefork", "celery.concurrency.thread", "kombu.transport.redis", "pydantic_settings"),
    *("sqlalchemy.orm", "sqlalchemy.dialects.postgresql.psycopg", "structlog", "uuid_utils"),
)


def orders() -> dict[str, Any] | None:
    """Answer orders; return one in the process that is to carry it out, None in this one at the end of the input."""
    for line in sys.stdin:
        order = json.loads(line)
        if "pid" in order:
            gone, status = os.waitpid(order["pid"], os.WNOHANG)
            print(json.dumps(os.waitstatus_to_exitcode(status) if gone else None), flush=True)
        elif os.fork() == 0:
            return order
    return None


def become(order: dict[str, Any]) -> None:
    """Be the process: leader of a session of its own before its id is told, as a child of `subprocess` is."""
    os.setsid()
    print(os.getpid(), flush=True)
    for number, (path, flags) in enumerate(
        [(os.devnull, os.O_RDONLY), *[(order["log"], os.O_WRONLY | os.O_APPEND)] * 2]
    ):
        opened = os.open(path, flags)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    module, *sys.argv[1:] = order["words"]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    for name in COMMON:
        import_module(name)
    gc.freeze()
    if asked := orders():
        become(asked)
