"""The handler of these tests: does what its run's payload says, and tells the test through files that both see.

Every start and every end is a line of `log`; whoever holds does so until `gate` is opened.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded

from office_tasks.execution.context import RunContext
from tests.nodes.waiting import until

DIRECTORY = "HANDLER_DIRECTORY"
PATIENCE = 110.0


def handle(context: RunContext) -> Any:
    """Do what `payload["do"]` names, or nothing when `payload["attempts"]` does not have this one."""
    _tell(context, "began")
    payload = context.run.payload
    if context.attempt in payload.get("attempts", [context.attempt]):
        result = globals()[payload["do"]](context)
    else:
        result = {"attempt": context.attempt}
    _tell(context, "ended")
    return result


def work(context: RunContext) -> Any:
    return {"attempt": context.attempt}


def hold(context: RunContext) -> Any:
    until((_directory() / "gate").exists, PATIENCE, "the gate is opened")
    return {"attempt": context.attempt}


def work_for_seconds(context: RunContext) -> Any:
    until_then = time.monotonic() + context.run.payload["seconds"]
    until(lambda: time.monotonic() > until_then, PATIENCE)
    return {"attempt": context.attempt}


def hold_on_through_anything(context: RunContext) -> Any:
    while not (_directory() / "gate").exists():
        try:
            hold(context)
        except (SoftTimeLimitExceeded, SystemExit) as error:
            _tell(context, f"swallowed {type(error).__name__}")
    return {"attempt": context.attempt}


def stop_when_asked(context: RunContext) -> Any:
    until(context.cancelled, PATIENCE, "it is asked to stop")
    return {"stopped": True}


def return_no_json(_: RunContext) -> Any:
    return {"a set": {1, 2}}


def return_nan(_: RunContext) -> Any:
    return float("nan")


def exit_as_a_program_would(_: RunContext) -> Any:
    raise SystemExit(3)


def be_cancelled_by_asyncio(_: RunContext) -> Any:
    raise asyncio.CancelledError


def interrupt(_: RunContext) -> Any:
    raise KeyboardInterrupt


def exit_at_once(_: RunContext) -> Any:
    os._exit(1)


def crash(_: RunContext) -> Any:
    os.kill(os.getpid(), signal.SIGSEGV)


def _directory() -> Path:
    return Path(os.environ[DIRECTORY])


def _tell(context: RunContext, what: str) -> None:
    line = {
        "run_id": str(context.run.id),
        "attempt": context.attempt,
        "what": what,
        "pid": os.getpid(),
        "at": time.time(),
    }
    with (_directory() / "log").open("a") as log:
        log.write(json.dumps(line) + "\n")
