"""The message of an execution is acknowledged early, and nothing about it bounds how long a run may take (REC-2.9)."""

from __future__ import annotations

import pytest

from tests.nodes.verbs import wait_for_log

# The shortest that the settings allow: 6 s, looked at every 5 s.
SHORT = {"OFFICE_VISIBILITY_TIMEOUT": "6", "OFFICE_TIME_LIMIT": "2", "OFFICE_SOFT_TIME_LIMIT": "1"}


@pytest.mark.office_worker(concurrency=2, queues="execution", env=SHORT)
def test_a_long_run_outlasts_every_limit_of_messages(worker, caller, desk):
    """REC-2.9: longer than OFFICE_TIME_LIMIT and than two visibility time-outs: it starts once, and finishes."""
    run_id = desk.begin("work_for_seconds", seconds=14)
    assert (caller.redis.hlen("unacked"), caller.redis.zcard("unacked_index")) == (0, 0)
    row = desk.until_status(run_id, "finished", timeout=40)
    assert (row["attempt"], row["error"], desk.attempts(run_id)) == (1, None, [1])


@pytest.mark.office_worker(concurrency=1, queues="execution")
def test_a_run_outlasts_its_broker(worker, broker, desk):
    """REC-2.9: Redis dies and comes back empty in mid-handler: the handler goes on, and the next run is executed."""
    run_id = desk.begin("hold")
    broker.kill("SIGKILL")
    wait_for_log(worker, "Connection to broker lost")
    broker.restart()
    desk.open_gate()
    assert desk.until_status(run_id, "finished")["attempt"] == 1
    healthy = desk.start("work")
    desk.until_status(healthy, "finished")
    assert (desk.attempts(run_id), desk.attempts(healthy)) == ([1], [1])
