"""A handler that runs a command for each run: `agent_process.py`, unless another is named (REC-2.4).

    export OFFICE_RUN_HANDLER=examples.handler_subprocess:run
    export OFFICE_EXAMPLE_COMMAND='my-agent --session {session_id}'
    office worker -Q execution

The command reads the run from standard input, as JSON, and writes its result to standard output, as JSON. In its
words `{session_id}`, `{task_id}`, `{agent_id}` and `{run_id}` are filled in, with nothing where there is none. With the
session's id an agent resumes its conversation: `session.is_new` on standard input tells whether there is one yet.

The command has ended before its run has: when the run is to stop, or its worker is, the command's process group is
asked to end and killed after a few seconds. Should the worker be killed, the kernel kills the command (on Linux); what
the command itself started sees its pipes close.
"""

import dataclasses
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import office_tasks
from office_tasks import RunContext

DEFAULT = [sys.executable, str(Path(__file__).with_name("agent_process.py"))]
# A script that asks the kernel for a signal at its parent's death, heeds SIGTERM again (a process of a Celery pool may
# ignore it, and what it starts would too), and then becomes the command.
TETHER = Path(office_tasks.__file__).parent / "devstack" / "tether.py"
POLL_SECONDS = 1.0
STOP_SECONDS = 3.0
ERROR_BYTES = 1_000


class CommandError(Exception):
    """The command failed, or was stopped."""


def run(context: RunContext) -> Any:  # noqa: ANN401 - any JSON value
    """Run the command; return the JSON that it wrote.

    Raises:
        CommandError: it was not found, was stopped, ended with another code than 0, or wrote no JSON.
    """
    with _start(_command(context)) as process:
        try:
            out, err = _wait(process, _as_json(context), context.cancelled)
        finally:  # also when the worker stops (SystemExit) or the run's time is up (SoftTimeLimitExceeded)
            _stop(process)
    if process.returncode != 0:
        raise CommandError(f"exit code {process.returncode}: {err[-ERROR_BYTES:].decode(errors='replace').strip()}")
    try:
        return json.loads(out)
    except ValueError:
        raise CommandError(f"it wrote no JSON but {out[:ERROR_BYTES]!r}") from None


def _command(context: RunContext) -> list[str]:
    ids = {
        "{run_id}": str(context.run.id),
        "{agent_id}": context.agent.id,
        "{task_id}": context.task.id if context.task else "",
        "{session_id}": str(context.session.id) if context.session else "",
    }
    words = shlex.split(os.environ.get("OFFICE_EXAMPLE_COMMAND", "")) or DEFAULT
    return [_filled(word, ids) for word in words]


def _filled(word: str, ids: dict[str, str]) -> str:
    for name, value in ids.items():
        word = word.replace(name, value)
    return word


def _as_json(context: RunContext) -> bytes:
    told = dataclasses.asdict(dataclasses.replace(context, cancelled=bool))  # the real one cannot be copied
    del told["cancelled"]
    return json.dumps(told, default=str).encode()


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    program = shutil.which(command[0])
    if program is None:
        raise CommandError(f"there is no program {command[0]!r}")
    tether = [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), str(int(signal.SIGKILL)), ""]
    return subprocess.Popen(  # noqa: S603 - the command is the operator's
        [*tether, program, *command[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # a process group of its own, to be ended as one
    )


def _wait(process: subprocess.Popen[bytes], given: bytes, cancelled: Callable[[], bool]) -> tuple[bytes, bytes]:
    sent: bytes | None = given
    while True:
        try:
            return process.communicate(sent, timeout=POLL_SECONDS)
        except subprocess.TimeoutExpired:
            sent = None
        if cancelled():
            raise CommandError("stopped: the run was to stop")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the command and all of its process group, if it has not ended."""
    if process.returncode is not None:
        return
    try:
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(STOP_SECONDS)
    finally:  # also when the worker is stopped in this very moment
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
