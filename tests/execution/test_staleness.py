"""What is no longer to be done is not done: a claimed run is checked against its task before it starts (REC-2.3)."""

from __future__ import annotations

import pytest

from db.states import TASK_STATUSES
from office_tasks.reasons import REASONS
from tests.execution.seen import is_quiet
from tests.support import T0, after

CLOSED = ("done", "cancelled")
OF_CLOSED_TASKS = {"task_mentioned", "task_reopened", "task_reopened_via_comment", "agent_error"}
ALL_REASONS = [*sorted(REASONS), "a-later-producers"]


def never(_context):
    pytest.fail("a stale run reached its handler")


@pytest.fixture
def cancelled(board, execute):
    """Return a function that executes the next run, expects it to be cancelled, and returns why."""

    def because():
        over = execute(never)
        row = board.run(over.run.id)
        assert (over.result, row["status"], row["attempt"]) == ("cancelled", "cancelled", 1)
        assert (row["finished_at"], row["session_id"], row["result"], row["error"]) == (T0, None, None, None)
        assert is_quiet(row)
        assert over.told()["cancel_reason"] == row["cancel_reason"]
        assert board.count("sessions") == 0
        return row["cancel_reason"]

    return because


@pytest.mark.parametrize("status", TASK_STATUSES)
@pytest.mark.parametrize("reason", ALL_REASONS)
def test_every_reason_and_every_status_of_its_task(queue, on_board, execute, cancelled, reason, status):
    """REC-2.3: a closed task cancels all but those four, which are about closed tasks; an open one none."""
    on_board("T1", status=status)
    queue(task="T1", reason=reason)
    if status in CLOSED and reason not in OF_CLOSED_TASKS:
        assert cancelled() == "task_terminal"
    else:
        assert execute().result == "finished"


@pytest.mark.parametrize("reason", ALL_REASONS)
def test_a_task_that_is_gone(queue, cancelled, reason):
    """REC-2.3: whatever the reason."""
    queue(task="nowhere", reason=reason)
    assert cancelled() == "task_gone"


@pytest.mark.parametrize("runner", ["bob", None])
@pytest.mark.parametrize("reason", ALL_REASONS)
def test_a_task_that_another_drives_now(queue, on_board, execute, cancelled, reason, runner):
    """REC-2.3: an assignment is moot once somebody else, or nobody, is the runner; no other reason is."""
    on_board("T1", runner=runner)
    queue(task="T1", reason=reason)
    if reason == "task_assigned":
        assert cancelled() == "runner_changed"
    else:
        assert execute().result == "finished"


def test_a_runner_by_projection_is_the_runner(board, queue, on_board, execute):
    """REC-2.3, SES-2.1: the step's primary agent drives a task without a seat."""
    board.execute("UPDATE steps SET primary_agent_id = 'ana' WHERE id = 'start'")
    on_board("T1", runner=None)
    queue(task="T1", reason="task_assigned")
    assert execute().result == "finished"


@pytest.mark.parametrize("payload", [{}, {"task_id": ""}, {"task_id": None}, {"task_id": 7}, [1], "T1", None])
@pytest.mark.parametrize("reason", ["task_assigned", "manual_resume"])
def test_a_run_without_a_task_is_never_stale(board, queue, execute, reason, payload):
    """REC-2.3, ADM-8.1: only text names a task; the handler gets none, and no session."""
    queue(payload=payload, reason=reason)
    given = []
    assert execute(given.append).result == "finished"
    assert (given[0].task, given[0].session) == (None, None)
    assert board.count("sessions") == 0


def test_what_changes_between_two_attempts_is_seen(board, queue, on_board, execute, time):
    """REC-2.3, REC-2.7: the second attempt is checked like the first; its session rests."""
    on_board("T1")
    run_id = queue(task="T1", reason="task_assigned")

    def fail(_context):
        raise RuntimeError

    assert execute(fail).result == "retried"
    board.execute("UPDATE tasks SET status = 'done'")
    time.move(hours=1)
    assert execute(never).result == "cancelled"
    row = board.run(run_id)
    assert (row["cancel_reason"], row["attempt"], row["finished_at"]) == ("task_terminal", 2, after(hours=1))
    assert [session["state"] for session in board.rows("SELECT state FROM sessions")] == ["idle"]


def test_a_stale_run_is_counted_and_the_next_one_starts(queue, on_board, execute, moved):
    """REC-2.3, REC-3.5: counted as cancelled under its reason; it costs its agent no place."""
    on_board("T1", status="done")
    queue(T0, task="T1", reason="task_comment")
    queue(after(minutes=1))
    assert [execute().result, execute().result] == ["cancelled", "finished"]
    assert moved("office_run_executions_total", reason="task_comment", result="cancelled") == 1
