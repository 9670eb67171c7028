"""Real workers: killed between the commit and the question, and asked for what the tasks say."""

from __future__ import annotations

import pytest

from tests.integration.caller import events
from tests.integration.conftest import arm, caller  # noqa: F401 - they are fixtures
from tests.integration.faults import setting
from tests.termination.stage import Stage

# The shortest that the settings allow, so that what a dead worker held comes back soon.
QUICK = {"OFFICE_VISIBILITY_TIMEOUT": "6", "OFFICE_TIME_LIMIT": "5", "OFFICE_SOFT_TIME_LIMIT": "4"}

MESSAGES = {
    "T1": ("remove_participant", "T1", "ana", "reviewer"),
    "T2": ("claim_seat", "T2", "reviewer", "ana", "bob"),
    "T3": ("assign_task", "T3", "bob"),
    "T4": ("terminate_session", "T4", "ana", "participant_removed"),
}
REASONS = {"T1": "participant_removed", "T2": "participant_seat_claimed", "T3": "task_reassigned",
           "T4": "participant_removed"}  # fmt: skip


@pytest.fixture
def talking(board):
    """Let `ana` talk on four tasks, in the capacity that each message takes away; on the last she has none."""
    stage = Stage(board)
    for task in MESSAGES:
        stage.create(task, step_id="wait", assignee="ana" if task == "T3" else "")
        if task in ("T1", "T2"):
            stage.seat("reviewer", "ana", task, "wait")
    return stage, {task: stage.converse(task) for task in MESSAGES}


@pytest.mark.parametrize("kept", [False, True], ids=["ended", "kept"])
def test_a_worker_killed_before_its_question(start_worker, caller, arm, talking, kept):  # noqa: F811 - fixtures
    """SES-1.2, SES-1.4, PRO-6.1: the message comes again: one mutation, one question, ended once, or kept."""
    stage, sessions = talking
    if kept:
        for task in MESSAGES:
            stage.seat("watcher", "ana", task, "wait")
    before = {task: stage.session(session) for task, session in sessions.items()}
    mutations = stage.board.count("mutations")
    fault = arm("kill")
    worker = start_worker(concurrency=1, env={**QUICK, **setting(fault.at("before_question"))})
    results = {}
    for task, message in MESSAGES.items():
        fault.once()
        sent = caller.send(*message)
        fault.struck()
        results[task] = sent.get(timeout=60)
    told = {task: result.get("session", result) for task, result in results.items()}
    rows = {task: stage.session(session) for task, session in sessions.items()}
    if kept:
        assert told == {task: {"terminated": False, "retained": "seat"} for task in MESSAGES}
        assert rows == before
    else:
        assert {task: one["session_id"] for task, one in told.items()} == {
            task: str(session) for task, session in sessions.items()
        }
        assert {task: row["reason"] for task, row in rows.items()} == REASONS
    assert stage.board.count("mutations") == mutations + 3
    said = "session_termination_suppressed" if kept else "session_terminated"
    assert [event["task_id"] for event in events(worker.logs(), said)] == list(MESSAGES)
