"""The demo from start to end: servers, schema, processes, cases, runs, tables; then all that it started is stopped."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from celery.exceptions import TimeoutError as NoAnswer
from rich.console import Console

from db import migrate
from db.databases import recreate
from office_tasks import admin, app
from office_tasks.demo import executed, processes, table
from office_tasks.demo.cases import CASES
from office_tasks.demo.executed import Became
from office_tasks.demo.office import RESUMED_LATER, furnish
from office_tasks.demo.play import ANSWER_SECONDS, DemoError, Played, play
from office_tasks.devstack import DevStack
from office_tasks.devstack.unwinding import signals_unwind
from office_tasks.logs import configure_logs

INTERRUPTED: Final = 130
READY_SECONDS: Final = 30
EXECUTED_SECONDS: Final = 30
PIPED_WIDTH: Final = 110
DATABASE: Final = "office_demo"

Say = Callable[[str], None]


def run(data_dir: Path) -> int:
    """Run the demo on servers of its own in `data_dir`; return 0, or 1 when something came out otherwise than it must.

    Raises:
        DevStackError: the servers cannot be started, or another demo runs in `data_dir`.
        DemoError: the worker or beat did not do its part.
    """
    console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPED_WIDTH)
    began = time.monotonic()
    try:
        with signals_unwind(), _progress(console) as say:
            played, runs = _perform(data_dir, say)
            say("stopping everything")
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started is stopped")
        return INTERRUPTED
    return _tell(console, data_dir, played, runs, time.monotonic() - began)


def _perform(data_dir: Path, say: Say) -> tuple[list[Played], list[Became]]:
    with ExitStack() as started:
        say(f"starting PostgreSQL and Redis in {data_dir}")
        servers = started.enter_context(DevStack(data_dir))
        environment = _environment(servers)
        say("starting a worker and beat")
        worker = started.enter_context(processes.worker(data_dir, environment))
        beat = started.enter_context(processes.beat(data_dir, environment))
        executor = processes.executor(data_dir, environment)
        executor.stop_left_over()  # it would execute what must stay queued until then
        started.callback(app.close)
        say("making the schema")
        migrate.upgrade(app.office.engine)
        started.callback(app.office.engine.dispose)
        say("furnishing the office")
        furnish(app.office.engine)
        say("waiting for the worker")
        _wait_for(worker)
        played = list(play(app.office.engine, CASES, lambda asked: say(f"asking: {asked}")))
        say("executing what is queued")
        started.enter_context(executor)
        _sweep()
        runs = executed.when_over(app.office.engine, EXECUTED_SECONDS)
        for process in (beat, executor):
            _still_runs(process)
        return played, runs


def _sweep() -> None:
    """Resume the agent whose task was never started, and ask for the sweep that beat would send within the minute."""
    admin.set_agent_status(app.office.engine, RESUMED_LATER, "active")
    try:
        app.send_task("recovery.recover_unstarted_tasks").get(timeout=ANSWER_SECONDS)
    except NoAnswer:
        raise DemoError(f"the worker did not sweep within {ANSWER_SECONDS} s") from None


def _environment(servers: DevStack) -> dict[str, str]:
    """Point this process, and what it starts, at the demo's servers and at no other."""
    for name in [name for name in os.environ if name.startswith(("OFFICE_", "CELERY_"))]:
        del os.environ[name]
    chosen = {
        "OFFICE_DATABASE_URL": recreate(servers.postgres.url, DATABASE),
        "OFFICE_BROKER_URL": servers.redis.url,
    }
    os.environ.update(chosen)
    configure_logs("ERROR")
    return chosen


def _wait_for(worker: processes.CeleryProcess) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not app.control.ping(timeout=0.3):
        _still_runs(worker)
        if time.monotonic() > deadline:
            raise DemoError(f"the worker was not ready within {READY_SECONDS} s:\n{worker.last_words()}")


def _still_runs(process: processes.CeleryProcess) -> None:
    if not process.runs:
        raise DemoError(f"a process of the demo ended; the end of {process.log}:\n{process.last_words()}")


@contextmanager
def _progress(console: Console) -> Iterator[Say]:
    """Show what is being done: in one line that changes on a terminal, in a few lines elsewhere."""
    with console.status("") as status:

        def say(what: str) -> None:
            status.update(what)
            if not console.is_terminal and not what.startswith("asking:"):
                console.print(what, highlight=False)

        yield say


def _tell(console: Console, data_dir: Path, played: list[Played], runs: list[Became], seconds: float) -> int:
    console.print(table.asked(played, console.width))
    console.print("What became of the runs that were queued, by their rows:", highlight=False)
    console.print(table.executed(runs, console.width))
    surprises = [*(one.surprise for one in played if one.surprise), *executed.surprises(runs)]
    for surprise in surprises:
        console.print(f"NOT AS IT MUST BE: {surprise}", style="bold red", highlight=False)
    verdict = f"{len(surprises)} times otherwise than it must be" if surprises else "each as it must be"
    console.print(
        f"{len(played)} asked, {len(runs)} runs, {verdict}, in {seconds:.0f} s. The gates are in "
        f"office_tasks/admission/gates.py; what the workers logged is in {data_dir}/worker/worker.log and "
        f"{data_dir}/executor/executor.log.",
        highlight=False,
    )
    return 1 if surprises else 0
