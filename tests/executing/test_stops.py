"""Workers that are told to stop: what can end in time does, and the rest is given back at once (REC-2.8)."""

from __future__ import annotations

import pytest

from tests.nodes.verbs import wait_exit, wait_for_log
from tests.nodes.waiting import until

# As `office worker` starts it: SIGTERM begins a soft stop, 8 s long.
SOFT = {"REMAP_SIGTERM": "SIGQUIT"}
pytestmark = pytest.mark.office_worker(concurrency=1, queues="execution", env=SOFT)


def stop(worker):
    worker.kill("SIGTERM")
    wait_for_log(worker, "Initiating Soft Shutdown")


def test_a_handler_that_ends_in_time_is_waited_for(worker, desk):
    """REC-2.8: told to stop in mid-handler: one that ends within the soft stop finishes."""
    run_id = desk.begin("hold")
    stop(worker)
    desk.open_gate()
    row = desk.until_status(run_id, "finished", timeout=8)
    assert (row["attempt"], row["result"]) == (1, {"attempt": 1})
    wait_exit(worker, timeout=60)
    assert desk.attempts(run_id) == [1]


def test_one_that_does_not_is_given_back(worker, start_worker, desk):
    """REC-2.8: ended by its worker's stop, a run is queued at once, and another worker has it as its second attempt."""
    run_id = desk.begin("hold", attempts=[1])
    stop(worker)
    row = until(lambda: (found := desk.board.run(run_id))["status"] == "queued" and found, 20, "it is given back")
    assert (row["error"], row["attempt"]) == ("its worker was stopped", 1)
    assert desk.board.rows("SELECT scheduled_retry_at <= now() AS due FROM runs") == [{"due": True}]
    start_worker()
    desk.signal()
    row = desk.until_status(run_id, "finished")
    assert (row["attempt"], row["error"], desk.attempts(run_id, "ended")) == (2, None, [2])
    wait_exit(worker, timeout=60)


def test_one_that_will_not_be_interrupted_is_waited_for(worker, desk):
    """REC-2.8: it swallows the SystemExit of its worker's stop: it finishes, and then the worker ends."""
    run_id = desk.begin("hold_on_through_anything")
    stop(worker)
    until(lambda: desk.attempts(run_id, "swallowed SystemExit"), what="it is interrupted")
    assert desk.board.run(run_id)["status"] == "claimed"
    desk.open_gate()
    assert desk.until_status(run_id, "finished")["result"] == {"attempt": 1}
    wait_exit(worker, timeout=60)


@pytest.mark.office_worker(concurrency=3, queues="execution", env=SOFT)
def test_all_that_a_worker_held_are_given_back(worker, start_worker, desk):
    """REC-2.8: three handlers at once, none of which ends: each is given back, and executed again."""
    desk.board.execute("UPDATE agents SET max_concurrent_sessions = 3")
    runs = [desk.begin("hold", attempts=[1]) for _ in range(3)]
    stop(worker)
    wait_exit(worker, timeout=60)
    assert {(row["status"], row["error"]) for row in desk.board.runs()} == {("queued", "its worker was stopped")}
    start_worker()
    desk.signal(len(runs))
    for run_id in runs:
        assert desk.until_status(run_id, "finished")["attempt"] == 2
