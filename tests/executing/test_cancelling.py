"""Executions that are asked to stop (REC-2.10)."""

from __future__ import annotations

import pytest

from recovery.rescue import rescue_once
from tests.integration.caller import events
from tests.nodes.verbs import wait_for_log

pytestmark = pytest.mark.office_worker(concurrency=1, queues="execution")

ASK = "UPDATE runs SET cancel_requested_at = now() - make_interval(secs => :ago) WHERE id = :id"


def test_a_handler_that_looks_stops_within_seconds(worker, desk):
    """REC-2.10: `cancelled()` turns true, the run is cancelled, and what its handler returned is kept."""
    run_id = desk.begin("stop_when_asked")
    desk.board.execute(ASK, id=run_id, ago=0)
    row = desk.until_status(run_id, "cancelled", timeout=10)
    assert (row["result"], row["cancel_reason"], row["attempt"]) == ({"stopped": True}, "interrupted", 1)
    healthy = desk.start("work")
    desk.until_status(healthy, "finished")


def test_one_that_does_not_loses_its_lease(worker, desk):
    """REC-2.10: after 30 s of grace it is withdrawn; what the handler then says changes nothing; the worker goes on."""
    run_id = desk.begin("hold")
    desk.board.execute(ASK, id=run_id, ago=29)
    assert rescue_once(desk.board.engine)["cancelled"] == 0
    desk.board.execute(ASK, id=run_id, ago=31)
    assert rescue_once(desk.board.engine)["cancelled"] == 1
    withdrawn = desk.board.run(run_id)
    assert (withdrawn["status"], withdrawn["cancel_reason"], withdrawn["result"]) == ("cancelled", "interrupted", None)
    healthy = desk.start("work")
    desk.open_gate()
    wait_for_log(worker, "run_lost")
    assert [line["run_id"] for line in events(worker.logs(), "run_lost")] == [str(run_id)]
    desk.until_status(healthy, "finished")
    assert desk.board.run(run_id) == withdrawn
    assert desk.attempts(run_id) == [1]
