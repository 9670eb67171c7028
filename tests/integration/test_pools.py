"""Every pool works on one engine, and a worker that is told to end loses nothing."""

from __future__ import annotations

import pytest

from tests.nodes.verbs import wait_exit
from tests.nodes.waiting import until

CALLS = 40
OPTIONS = {"prefork": {"concurrency": 4}, "threads": {"concurrency": 4}, "solo": {"concurrency": 1}}
BACKENDS = (
    "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'office' AND datname = current_database()"
)


@pytest.fixture
def make_test_engine(make_test_engine):
    """The test's own connections do not count as a worker's."""
    return lambda **options: make_test_engine(application_name="test", **options)


@pytest.mark.parametrize(
    "pool",
    [
        pytest.param(pool, marks=pytest.mark.office_worker(pool=pool, **options, env={"OFFICE_CONCURRENCY": "4"}))
        for pool, options in OPTIONS.items()
    ],
)
def test_each_call_has_its_own_row_in_every_pool(worker, caller, pool):
    """C20: mixed calls at once; every row holds its own call's payload, and no backend is shared or wasted."""
    doors = {True: ("queue_run",), False: ("spawn_run", "run-1")}
    sent = {n: caller.send(*doors[n % 2 == 0], "ana", f"r-{n}", {"n": n}) for n in range(CALLS)}
    runs = {n: result.get(timeout=60)["run_id"] for n, result in sent.items()}
    stored = {str(run["id"]): run["payload"] for run in caller.board.runs()}
    assert stored == {run_id: {"n": n} for n, run_id in runs.items()}
    (backends,) = caller.board.rows(BACKENDS)
    assert 1 <= backends["n"] <= OPTIONS[pool]["concurrency"]


@pytest.mark.office_worker(concurrency=2)
def test_sigterm_under_load_loses_nothing(worker, caller):
    """PRO-6.2: told to end with the queue full, it ends by itself; after a restart every message is answered, once."""
    sent = [caller.send("queue_run", "ana", f"r-{n}") for n in range(150)]
    until(caller.board.runs, what="the first run")
    worker.kill("SIGTERM")
    # A child whose last answers the main process took no note of waits 30 s for it (billiard's own limit), then ends.
    assert wait_exit(worker, timeout=60) == 0
    assert 0 < len(caller.board.runs()) <= len(sent)
    worker.restart()
    assert {result.get(timeout=60)["outcome"] for result in sent} == {"queued"}
    assert len(caller.board.runs()) == len(caller.board.wakes()) == len(sent)
