"""`office demo` as a person meets it: to its end, twice at once, killed, and interrupted."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import psutil
import pytest

from office_tasks.admission import GATES, Outcome
from tests.cli.conftest import start
from tests.nodes.waiting import until

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def place(tmp_path):
    """A directory to run it in, and nothing of ours running there in the end."""
    yield tmp_path
    until(lambda: not processes_in(tmp_path), timeout=20, what="the end of all that was started")
    for link in tmp_path.rglob("elsewhere"):  # where root's PostgreSQL, which is not root, keeps its files
        shutil.rmtree(link.resolve(), ignore_errors=True)


def processes_in(directory: Path) -> list[psutil.Process]:
    places = [directory, *(link.resolve() for link in directory.rglob("elsewhere"))]
    running = [process for process in psutil.process_iter(["cwd", "status"]) if process.info["cwd"]]
    return [
        process
        for process in running
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and any(Path(process.info["cwd"]).is_relative_to(place) for place in places)
    ]


def finish(process, timeout=100):
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def read_until(process, text):
    for line in process.stdout:
        if text in line:
            return
    raise AssertionError(f"it ended without saying {text!r}: {process.stderr.read()}")


def test_it_shows_every_outcome_and_gate_and_leaves_nothing_running(place):
    code, out, err = finish(start("demo", cwd=place, COLUMNS="120"))
    assert (code, err) == (0, ""), out
    assert "each as it must be" in out
    for word in (*(outcome.value for outcome in Outcome), "AgentNotFound", "AgentNotWakeable", "WorkspacePaused",
                 "InvalidInput", "Forbidden", "NotFound", "owed", "no wake"):  # fmt: skip
        assert f" {word} " in out, word
    for number, gate in enumerate(GATES, 1):
        assert f"{number} {gate.decide.__name__.split('_')[0]}" in out


def test_a_second_one_says_what_to_do_and_a_killed_one_is_no_obstacle(place):
    with start("demo", cwd=place) as first:
        read_until(first, "furnishing")
        code, _, err = finish(start("demo", cwd=place))
        assert (code, err.count("\n")) == (1, 1)
        assert f"`kill {first.pid}`" in err
        first.kill()
    code, out, err = finish(start("demo", cwd=place))
    assert (code, err) == (0, ""), out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_one_stops_what_it_started(place, number):
    with start("demo", cwd=place) as process:
        read_until(process, "waiting for the worker")
        os.kill(process.pid, number)
        code, out, err = finish(process)
    assert (code, err) == (130, "")
    assert "interrupted; everything that was started is stopped" in out
    assert not processes_in(place / ".data")
