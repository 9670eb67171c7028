"""ADM-10.6: what `office why` says of tasks that nobody was woken for, by the sweep's own conditions."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from db.unstarted import _UNSTARTED
from office_tasks.why.tasks import NO_CANDIDATE, SKIPPED
from tests.cli.moments import ago, begin
from tests.recovery.conftest import at, tick, unstarted  # noqa: F401 - fixtures


@pytest.fixture(autouse=True)
def quiet():
    begin()
    with capture_logs():
        yield


def test_24_a_task_without_any_wake_is_the_sweeps(why, unstarted, board):  # noqa: F811 - the fixture
    unstarted("T1", created=ago(minutes=5))
    document = why("T1")
    assert (document["wakes"], document["runs"]) == ([], [])
    assert document["now"] == [
        "Nobody asked that anybody be started for it, or what was asked is past its retention.",
        "The sweep wakes agent ana for it at one of its next passes.",
    ]


PASSED_OVER = {
    "agent_not_found": ("UPDATE seats SET agent_profile_id = 'ghost'", "there is no agent ghost"),
    "agent_not_wakeable": ("UPDATE agents SET status = 'pending_approval'", "agent ana is pending_approval"),
    "workspace_paused": ("INSERT INTO pauses (workspace_id) VALUES ('acme')", "the workspace of agent ana is paused"),
    "step_does_not_auto_start": ("UPDATE steps SET auto_start = false", "its step starts no work by itself"),
    "blocked": ("INSERT INTO blockers (task_id, blocker_id) VALUES ('T1', 'X')", "it waits for what blocks it"),
    "backing_off": (
        "UPDATE tasks SET recovery_attempts = 1, recovery_next_at = '2999-01-01Z'",
        "it was woken before, and its gap is not over before 2999-01-01 00:00:00 UTC",
    ),
}


@pytest.mark.parametrize("skipped", SKIPPED)
def test_25_a_task_that_the_sweep_passes_over(board, why, unstarted, tick, skipped):  # noqa: F811 - the fixtures
    unstarted("T1", created=ago(minutes=5))
    unstarted("X", status="in_progress")
    statement, because = PASSED_OVER[skipped]
    board.execute(statement)
    now = why("T1")["now"]
    assert now[-1] == f"The sweep passes it over: {because}."
    assert ("It is blocked by X (in_progress)." in now) is (skipped == "blocked")


NONE = {
    "replay": "UPDATE workspaces SET is_replay = true",
    "not_todo": "UPDATE tasks SET status = 'in_review'",
    "archived": "UPDATE tasks SET archived_at = now()",
    "ephemeral": "UPDATE tasks SET is_ephemeral = true",
    "automation": "UPDATE tasks SET created_by_automation = true",
    "no_office_task": "UPDATE tasks SET workflow_id = NULL",
    "too_old": "UPDATE tasks SET created_at = now() - interval '25 h'",
    "unassigned": "DELETE FROM seats",
    "no_runner": "UPDATE seats SET agent_profile_id = ''",
}


@pytest.mark.parametrize("because", NONE)
def test_26_a_task_that_is_no_candidate(board, why, unstarted, because):  # noqa: F811 - the fixture
    unstarted("T1", created=ago(minutes=5))
    board.execute(NONE[because])
    expected = NO_CANDIDATE[because].format(status="in_review")
    assert why("T1")["now"][-1] == f"The sweep leaves it alone: {expected}."


def test_every_condition_of_the_sweep_has_its_words():
    """Started and owed are situations of their own, above."""
    assert set(NO_CANDIDATE) == {*_UNSTARTED, "no_runner"} == {*NONE, "started", "owed"}
    assert set(SKIPPED) == set(PASSED_OVER)
