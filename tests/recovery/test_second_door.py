"""C11: no producer walks past a pause; a bare wake is refused and counted, what a mutation owes waits for the end."""

from __future__ import annotations

from contextlib import suppress

import pytest

from db.endings import Ending
from office_tasks import admin
from office_tasks.errors import WorkspacePaused
from office_tasks.execution import orders
from office_tasks.execution.begin import begin
from office_tasks.execution.end import end
from office_tasks.producers.pauses import pause_workspace, resume_workspace
from office_tasks.producers.producer import Producer
from office_tasks.reasons import MANUAL_RESUME
from tests.admission.rows import store_run
from tests.admission.telling import REFUSALS, listening
from tests.producers.acts import Acts
from tests.producers.table import TABLE

# What these ask for is about a run that was there before the pause; the sweep's own pauses are in test_sweep.py.
ABOUT_A_RUN = {Producer.FAILED_RUN, Producer.MANUAL_RESUME}
OTHERS = [row for row in TABLE if row.producer not in ABOUT_A_RUN | {Producer.RECOVERY_SWEEP}]


@pytest.mark.parametrize("row", OTHERS, ids=str)
def test_no_producer_inserts_a_run_in_a_pause(board, row):
    """C11, PRO-6.4: every producer, each of its wakes."""
    board.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
    with listening() as told, suppress(WorkspacePaused):
        list(row.occurrences(Acts(board)))
    wakes = board.wakes()
    assert wakes, "it asked"
    assert board.count("runs") == 0
    refused = [wake["refusal"] for wake in wakes if wake["state"] == "decided"]
    assert set(refused) <= {"workspace_paused"}
    assert sum(by for (name, _), by in told.moved.items() if name == REFUSALS) == len(refused)
    assert all(wake["state"] in ("owed", "decided") for wake in wakes)


def test_a_run_that_fails_in_a_pause_wakes_nobody(board):
    """C11, PRO-6.4, REC-2.7: the coordinator hears of it when the pause is over."""
    admin.create_agent(board.engine, "acme", "cleo", role="ceo")
    store_run(board, reason=MANUAL_RESUME)
    run = begin(board.engine).run
    pause_workspace(board.engine, "p", "acme")
    end(board.engine, run, Ending("fail", error="no luck"))
    assert [(row["reason"], row["state"]) for row in board.wakes()] == [("agent_error", "owed")]
    assert board.count("runs") == 1
    resume_workspace(board.engine, "r", "acme")
    assert [row["agent_profile_id"] for row in board.runs() if row["status"] == "queued"] == ["cleo"]


def test_a_run_that_is_retried_by_hand_or_by_time_waits_for_the_end_of_a_pause(board):
    """C11, REC-2.2: neither an operator's order nor a retry that has come due starts anything."""
    over, waiting = store_run(board, status="failed"), store_run(board, reason=MANUAL_RESUME, agent="bob")
    board.execute("UPDATE runs SET attempt = 1, scheduled_retry_at = requested_at WHERE id = :id", id=waiting)
    pause_workspace(board.engine, "p", "acme")
    with pytest.raises(WorkspacePaused):
        orders.retry(board.engine, "w", str(over))
    assert begin(board.engine) is None
    assert board.count("runs") == 2
    resume_workspace(board.engine, "r", "acme")
    assert begin(board.engine).run.id == waiting
