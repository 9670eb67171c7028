"""Handlers that do what they should not: the run says what happened, and the worker executes the next one (REC-2.4)."""

from __future__ import annotations

import pytest

from tests.cli.conftest import run_process
from tests.integration.caller import events
from tests.nodes.verbs import wait_for_log

__all__ = ["run_process"]

pytestmark = pytest.mark.office_worker(concurrency=1, queues="execution")

NOT_STORED = "the handler returned what cannot be stored: "
SAID = {
    "return_no_json": NOT_STORED,
    "return_nan": NOT_STORED,
    "exit_as_a_program_would": "SystemExit: 3",
    "be_cancelled_by_asyncio": "CancelledError",
    "interrupt": "KeyboardInterrupt",
    "undefined": "KeyError: 'undefined'",
}


def is_waiting(row, attempt=1):
    return (row["status"], row["attempt"], row["finished_at"]) == ("queued", attempt, None) and row[
        "scheduled_retry_at"
    ] is not None


def test_whatever_a_handler_does_is_said_on_its_run(worker, desk):
    """REC-2.4, REC-2.7: no JSON, SystemExit, an interrupt, an error: each waits for its retry; one process does all."""
    runs = {do: desk.start(do) for do in SAID}
    healthy = desk.start("work")
    desk.until_status(healthy, "finished")
    for do, run_id in runs.items():
        row = desk.board.run(run_id)
        assert is_waiting(row), do
        assert row["error"].startswith(SAID[do])
    assert len({line["pid"] for run_id in (*runs.values(), healthy) for line in desk.told(run_id)}) == 1
    assert worker.container.status == "running"
    assert len(events(worker.logs(), "run_retried")) == len(SAID)


@pytest.mark.parametrize("do", ["exit_at_once", "crash"])
def test_a_handler_that_ends_its_process_ends_no_worker(worker, desk, do):
    """REC-2.4, REC-2.8: os._exit and a segmentation fault: the next run is executed; the lease tells of the first."""
    run_id = desk.begin(do)
    healthy = desk.start("work", agent="bob")
    desk.until_status(healthy, "finished")
    assert desk.board.run(run_id)["status"] == "claimed"
    assert desk.lapse(run_id)["retried"] == 1
    row = desk.board.run(run_id)
    assert row["error"] == "its lease ran out: the worker died, or stood still for a minute"
    assert desk.told(healthy)[0]["pid"] != desk.told(run_id)[0]["pid"]


@pytest.mark.office_worker(
    concurrency=1, queues="execution", env={"OFFICE_RUN_HANDLER": "tests.executing.nowhere:handle"}
)
def test_a_handler_that_cannot_be_imported(worker, desk):
    """REC-2.4: every run says so and waits for its retry; the worker lives."""
    first, second = desk.start("work"), desk.start("work")
    rows = [desk.ends(run_id) for run_id in (first, second)]
    assert all(is_waiting(row) for row in rows)
    for row in rows:
        assert row["error"].startswith(
            "HandlerError: OFFICE_RUN_HANDLER 'tests.executing.nowhere:handle' cannot be imported: ModuleNotFoundError"
        )
    assert worker.container.status == "running"


@pytest.mark.parametrize("path", ["no colon", "package.module:", "package.module:f(1)", ""])
@pytest.mark.parametrize("command", ["worker", "beat"])
def test_a_malformed_path_is_refused_at_start(run_process, command, path):
    """REC-2.4: one sentence that names the variable; nothing is started."""
    said = run_process(command, OFFICE_RUN_HANDLER=path)
    assert (said.code, said.out, said.err.count("\n")) == (1, "", 1)
    assert said.err.startswith("office: OFFICE_RUN_HANDLER must be package.module:function, not ")


@pytest.mark.office_worker(concurrency=1, queues="execution", env={"OFFICE_RUN_TIME_LIMIT": "1"})
def test_a_handler_that_never_returns_is_interrupted_at_its_limit(worker, desk):
    """REC-2.9: the soft limit ends it, the run says so, and the same process executes the next."""
    run_id = desk.start("hold")
    healthy = desk.start("work")
    desk.until_status(healthy, "finished")
    row = desk.board.run(run_id)
    assert is_waiting(row)
    assert row["error"] == "the handler took longer than OFFICE_RUN_TIME_LIMIT, 1 s"
    assert desk.told(run_id)[0]["pid"] == desk.told(healthy)[0]["pid"]


@pytest.mark.office_worker(concurrency=1, queues="execution", env={"OFFICE_RUN_TIME_LIMIT": "1"})
def test_one_that_goes_on_all_the_same_is_given_up_and_killed(start_worker, desk):
    """REC-2.9: it swallows the soft limit: given up after the grace, its process killed by the hard limit."""
    worker = start_worker(app="tests.executing.impatient")
    run_id = desk.begin("hold_on_through_anything")
    row = desk.ends(run_id)
    assert is_waiting(row)
    assert row["error"] == "the handler did not stop after OFFICE_RUN_TIME_LIMIT, 1 s"
    assert desk.attempts(run_id, "swallowed SoftTimeLimitExceeded") == [1]
    healthy = desk.start("work")
    wait_for_log(worker, "Hard time limit")
    desk.until_status(healthy, "finished")
    assert desk.board.run(run_id) == row
    assert desk.told(run_id)[0]["pid"] != desk.told(healthy)[0]["pid"]
    assert worker.container.status == "running"
    assert desk.attempts(run_id, "ended") == []


@pytest.mark.office_worker(pool="threads", concurrency=2, queues="execution", env={"OFFICE_RUN_TIME_LIMIT": "1"})
def test_in_a_thread_it_is_given_up_and_left_alone(start_worker, desk):
    """REC-2.9: a thread cannot be interrupted: given up after the grace, and what it says later is too late."""
    worker = start_worker(app="tests.executing.impatient")
    run_id = desk.begin("hold")
    row = desk.ends(run_id)
    assert is_waiting(row)
    assert row["error"] == "the handler did not stop after OFFICE_RUN_TIME_LIMIT, 1 s"
    healthy = desk.start("work")
    desk.until_status(healthy, "finished")
    desk.open_gate()
    wait_for_log(worker, "run_lost")
    assert desk.board.run(run_id) == row
