"""Two ways to run a command: in this process, on the test's own database, and as the process that a person starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from office_tasks.cli import context, main
from office_tasks.devstack.ports import HOST, pick
from office_tasks.producers.creation import create_task
from tests.cli.brokers import looking_at
from tests.cli.said import Said, as_json

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-c", "import sys; sys.argv[0] = 'office'; from office_tasks.cli import main; main()"]


@pytest.fixture
def run(office, capsys, monkeypatch):
    """Run a command in this process, on the test's own database."""
    # The logs of the whole test process are not a command's to configure; what it does with them is seen in processes.
    monkeypatch.setattr(context, "configure_logs", lambda _level: None)

    def run(*words: str) -> Said:
        with capture_logs(), pytest.raises(SystemExit) as ended:
            main(words)
        return Said(ended.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def at_broker(monkeypatch):
    """Return a function that has the commands of this process look at another broker."""

    def name(url):
        app = looking_at(url)
        monkeypatch.setattr(context, "application", lambda: app)
        return url

    return name


@pytest.fixture
def broker_away(at_broker):
    """The URL of a broker that is not there, which the commands of this process look at."""
    return at_broker(f"redis://{HOST}:{pick()}/0")


@pytest.fixture
def why(run, broker_away):
    """Return what is said of an id, as JSON; the text for people holds every sentence of it too."""

    def ask(named):
        document = as_json(run, "why", str(named))
        told = run("why", str(named)).out
        for sentence in [*document["now"], *(one for part in ("wakes", "runs") for row in document[part]
                                             for one in row["sentences"])]:  # fmt: skip
            assert sentence in told
        return document

    return ask


@pytest.fixture
def wake_said(why):
    """Return what is said of the newest wake of an id."""
    return lambda named: why(named)["wakes"][0]["sentences"]


@pytest.fixture
def run_said(why):
    """Return what is said of the newest run of an id."""
    return lambda named: why(named)["runs"][0]["sentences"]


@pytest.fixture
def task(board):
    """T1 at a step that starts work by itself, driven by nobody."""
    create_task(board.engine, "c1", "acme", "Paint", task_id="T1", step_id="start")
    return "T1"


def environment(**settings: str) -> dict[str, str]:
    """Return this process's environment with none but the given settings of the office."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("OFFICE_", "FLOWER_"))}
    return {**ours, "PYTHONPATH": str(ROOT), **settings}


def start(*words: str, cwd: Path, **settings: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, *words],
        cwd=cwd,
        env=environment(**settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def run_process(tmp_path):
    """Run a command as a process, in an empty directory, with none but the given settings of the office."""

    def run(*words: str, **settings: str) -> Said:
        with start(*words, cwd=tmp_path, **settings) as process:
            out, err = process.communicate(timeout=100)
        return Said(process.returncode, out, err)

    return run
