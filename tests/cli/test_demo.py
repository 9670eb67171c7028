"""`office demo` as a person meets it: to its end, twice at once, killed, and interrupted."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path

import psutil
import pytest

from office_tasks.admission import GATES, Outcome
from office_tasks.demo import executed
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
    ends = out.partition("What became of the runs")[2]
    for run in ("fay: task_assigned of loop +finished +1", "ada, ben, cleo, dan, eli: +cancelled +1",
                "ben: task_assigned of kiln +finished +2", "gus: task_assigned of hedge +finished +1"):  # fmt: skip
        assert re.search(run, ends), run


def a_run(**changed):
    return executed.CONTRACT[0][0]._replace(**changed)


def test_a_run_that_ended_otherwise_or_is_missing_is_a_surprise():
    """What the demo compares: each run of the contract once, with its end, its attempt and who asked for it."""
    runs = [became for became, _ in executed.CONTRACT]
    assert executed.surprises(runs) == []
    assert executed.surprises(runs[1:]) == ["the run of ben, weekly_report: expected finished (attempt 1)"]
    assert executed.surprises([*runs[1:], a_run(status="queued", attempt=2)]) == [
        "the run of ben, weekly_report: expected finished (attempt 1)",
        "the run of ben, weekly_report: got queued (attempt 2)",
    ]
    (swept,) = [became for became in runs if became.is_swept]
    others = [became for became in runs if became is not swept]
    assert executed.surprises([*others, swept._replace(is_swept=False)]) == [
        "the run of gus, task_assigned of hedge: expected finished (attempt 1, woken by the sweep)",
        "the run of gus, task_assigned of hedge: got finished (attempt 1)",
    ]
    assert executed.surprises([*runs, a_run()]) == ["the run of ben, weekly_report: got finished (attempt 1)"]


def test_a_second_one_says_what_to_do_and_a_killed_one_is_no_obstacle(place):
    with start("demo", cwd=place) as first:
        read_until(first, "furnishing")
        code, _, err = finish(start("demo", cwd=place))
        assert (code, err.count("\n")) == (1, 1)
        assert f"`kill {first.pid}`" in err
        first.kill()
    code, out, err = finish(start("demo", cwd=place))
    assert (code, err) == (0, ""), out


@pytest.mark.parametrize(
    ("number", "during"), [(signal.SIGINT, "waiting for the worker"), (signal.SIGTERM, "executing what is queued")]
)
def test_an_interrupted_one_stops_what_it_started(place, number, during):
    with start("demo", cwd=place) as process:
        read_until(process, during)
        os.kill(process.pid, number)
        code, out, err = finish(process)
    assert (code, err) == (130, "")
    assert "interrupted; everything that was started is stopped" in out
    assert not processes_in(place / ".data")
