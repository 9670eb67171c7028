"""Workers that die or stand still in mid-handler: the run is taken over and ends once (REC-2.8)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from db.claims import LEASE
from tests.integration.caller import events
from tests.integration.faults import setting
from tests.nodes.verbs import kill_child, pause, resume, wait_for_log
from tests.nodes.waiting import until

pytestmark = pytest.mark.office_worker(concurrency=1, queues="execution")


@pytest.mark.timeout(240)
def test_a_killed_workers_run_is_taken_over_within_two_leases(worker, start_worker, beat, desk, record_property):
    """REC-2.8, REC-2.6: kill -9 in mid-handler, in real time, with beat: taken over within two leases, ends once."""
    run_id = desk.begin("hold", attempts=[1])
    worker.kill("SIGKILL")
    killed = datetime.now(UTC)
    start_worker(queues="recovery,execution")
    desk.until_began(run_id, attempt=2, timeout=2 * LEASE.total_seconds())
    taken_over = (desk.board.run(run_id)["claimed_at"] - killed).total_seconds()
    record_property("taken_over_after_seconds", taken_over)
    assert taken_over < 2 * LEASE.total_seconds()
    row = desk.until_status(run_id, "finished")
    assert (row["attempt"], row["result"], row["error"]) == (2, {"attempt": 2}, None)
    assert (desk.attempts(run_id), desk.attempts(run_id, "ended")) == ([1, 2], [2])


def test_a_run_goes_on_after_its_process_was_killed(worker, desk):
    """REC-2.8: kill -9 of the pool's child alone: the lease runs out, and the same worker executes it again."""
    run_id = desk.begin("hold", attempts=[1])
    assert kill_child(worker) == desk.told(run_id)[0]["pid"]
    assert desk.lapse(run_id) == {"retried": 1, "failed": 0, "cancelled": 0, "left": 0}
    desk.signal()
    row = desk.until_status(run_id, "finished")
    assert (row["attempt"], desk.attempts(run_id, "ended")) == (2, [2])
    assert worker.container.status == "running"


def test_a_late_writer_loses(worker, start_worker, broker, desk):
    """REC-2.8: SIGSTOP past the lease, another worker takes over and finishes; SIGCONT: nothing is overwritten."""
    run_id = desk.begin("hold", attempts=[1])
    pause(worker)
    # Until its question is over, Redis would hand the next message to whoever stands still.
    until(lambda: broker.container.client.info("clients")["blocked_clients"] == 0, what="nobody asks the broker")
    assert desk.lapse(run_id)["retried"] == 1
    start_worker()
    desk.signal()
    second = desk.until_status(run_id, "finished")
    desk.open_gate()
    resume(worker)
    wait_for_log(worker, "run_lost")
    assert [(line["run_id"], line["attempt"]) for line in events(worker.logs(), "run_lost")] == [(str(run_id), 1)]
    assert desk.attempts(run_id, "ended") == [2, 1]
    assert desk.board.run(run_id) == second
    assert second["result"] == {"attempt": 2}


def test_a_second_death_makes_the_run_wait(worker, desk):
    """REC-2.8, REC-2.7: a run that takes its process with it is given to the next at once, once; then it waits."""
    run_id = desk.start("crash")
    for attempt in (1, 2):
        desk.until_began(run_id, attempt)
        assert desk.lapse(run_id)["retried"] == 1
        desk.signal()
    healthy = desk.start("work")
    desk.until_status(healthy, "finished")
    row = desk.board.run(run_id)
    assert (row["status"], row["attempt"]) == ("queued", 2)
    assert row["error"] == "its lease ran out: the worker died, or stood still for a minute"
    assert 5 < (row["scheduled_retry_at"] - datetime.now(UTC)).total_seconds() / 60 < 13


@pytest.mark.parametrize("point", ["run_begun", "run_handled"])
def test_killed_on_either_side_of_the_handler(start_worker, arm, desk, point):
    """REC-2.8, REC-2.4: claimed and not begun, or done and not written: executed at least once, ended once."""
    fault = arm("kill")
    worker = start_worker(env=setting(fault.at(point)))
    fault.once()
    run_id = desk.start("work")
    fault.struck()
    assert desk.board.run(run_id)["status"] == "claimed"
    assert desk.lapse(run_id)["retried"] == 1
    desk.signal()
    row = desk.until_status(run_id, "finished")
    assert (row["attempt"], row["result"]) == (2, {"attempt": 2})
    assert desk.attempts(run_id) == ([2] if point == "run_begun" else [1, 2])
    assert worker.container.status == "running"
