"""Asking an execution to stop: it sees the flag, ends cancelled, and is cut off after its grace (REC-2.10)."""

from __future__ import annotations

import pytest

from db.endings import Ending
from office_tasks import admin
from office_tasks.execution import keeper, orders
from office_tasks.execution.begin import begin
from office_tasks.execution.context import RetryAt
from office_tasks.execution.end import end
from office_tasks.producers.assignments import assign_task
from recovery.relay import relay_once
from recovery.rescue import rescue_once
from tests.execution.handlers import raising
from tests.execution.seen import is_quiet, state_of
from tests.nodes.waiting import until
from tests.support import T0, after

NOTHING = {"retried": 0, "failed": 0, "cancelled": 0, "left": 0}


@pytest.fixture
def ask_to_stop(virtual):
    """Return a function that orders a run to be cancelled."""
    return lambda run_id: orders.cancel(virtual, str(run_id))


@pytest.fixture
def stopping(board, queue, on_board, virtual, ask_to_stop):
    """An execution of task T1 that was asked to stop at T0, and goes on."""
    on_board("T1")
    queue(task="T1")
    run = begin(virtual).run
    ask_to_stop(run.id)
    return run


def test_a_handler_sees_that_it_is_asked_to_stop(board, queue, execute, ask_to_stop):
    """REC-2.10: within a second or so, in a loop."""
    run_id = queue()

    def work(context):
        assert not context.cancelled()
        ask_to_stop(run_id)
        until(context.cancelled, timeout=10)
        return "stopped half way"

    assert execute(work).result == "cancelled"
    row = board.run(run_id)
    assert (row["status"], row["cancel_reason"], row["result"]) == ("cancelled", "operator", "stopped half way")


def test_the_flag_is_asked_for_once_a_second(board, queue, execute, ask_to_stop, monkeypatch):
    """REC-2.10: `cancelled()` may be called in a loop; and once it said yes it asks no more."""
    asked = []
    learn = keeper.Keeper._learn
    monkeypatch.setattr(keeper.Keeper, "_learn", lambda self, ask: asked.append(ask) or learn(self, ask))

    def work(context):
        before = [context.cancelled() for _ in range(1_000)]
        ask_to_stop(context.run.id)
        until(context.cancelled, timeout=10)
        return [any(before), all(context.cancelled() for _ in range(1_000)), len(asked)]

    queue()
    assert execute(work).result == "cancelled"
    assert board.runs()[0]["result"][:2] == [False, True]
    assert 1 <= board.runs()[0]["result"][2] <= 3


def test_the_keeper_learns_it_with_the_renewal(queue, execute, ask_to_stop, monkeypatch):
    """REC-2.10: a handler that asks rarely is told without a question of its own."""
    monkeypatch.setattr(keeper, "RENEWAL_SECONDS", 0.01)
    monkeypatch.setattr(keeper, "ASK_SECONDS", 3_600.0)
    run_id = queue()

    def work(context):
        ask_to_stop(run_id)
        until(context.cancelled, timeout=10)

    assert execute(work).result == "cancelled"


ENDS = {
    "finish": (lambda _context: {"n": 1}, {"n": 1}, None),
    "fail": (raising(RuntimeError("E")), None, "RuntimeError: E"),
    "retry at": (raising(RetryAt(after(hours=1), "later")), None, "RetryAt: later"),
    "bad result": (lambda _context: object(), None, None),
}


@pytest.mark.parametrize("attempt", [1, 5])
@pytest.mark.parametrize("how", ENDS)
def test_whatever_it_ends_with_it_ends_cancelled(board, queue, execute, ask_to_stop, moved, how, attempt):
    """REC-2.10, REC-2.1: its result or error is kept; it is not tried again, and no coordinator hears of it."""
    admin.create_agent(board.engine, "acme", "cleo", role="ceo")
    work, result, error = ENDS[how]
    run_id = queue(reason="task_comment")
    board.execute("UPDATE runs SET attempt = :before", before=attempt - 1)

    def stop(context):
        ask_to_stop(run_id)
        return work(context)

    assert execute(stop).result == "cancelled"
    row = board.run(run_id)
    assert (row["status"], row["cancel_reason"], row["result"]) == ("cancelled", "operator", result)
    assert error in (None, row["error"])
    assert (row["scheduled_retry_at"], row["finished_at"], is_quiet(row)) == (None, T0, True)
    assert board.count("wakes") == 0
    assert moved("office_run_executions_total", reason="task_comment", result="cancelled") == 1


def test_within_its_grace_it_is_left_alone(board, stopping, virtual, time):
    """REC-2.10: for thirty seconds."""
    before = board.run(stopping.id)
    time.move(seconds=29.999)
    assert rescue_once(virtual) == NOTHING
    assert board.run(stopping.id) == before
    assert end(virtual, stopping, Ending("finish", result="1")).result == "cancelled"


def test_after_its_grace_its_lease_is_withdrawn(board, stopping, virtual, time, untouched):
    """REC-2.10, 8-engineering 1: cancelled by the rescue; the late write loses; the session rests."""
    time.move(seconds=30)
    assert rescue_once(virtual) == {**NOTHING, "cancelled": 1}
    row = board.run(stopping.id)
    assert (row["status"], row["cancel_reason"], row["finished_at"]) == ("cancelled", "operator", after(seconds=30))
    assert is_quiet(row)
    assert [one["state"] for one in board.rows("SELECT state FROM sessions")] == ["idle"]
    same = untouched("runs", stopping.id)
    assert end(virtual, stopping, Ending("finish", result="1")).result == "lost"
    assert same()


def test_a_fifth_attempt_that_would_not_stop_alarms_nobody(board, queue, virtual, ask_to_stop, time):
    """REC-2.10, REC-2.7: it was cancelled, it did not fail."""
    admin.create_agent(board.engine, "acme", "cleo", role="ceo")
    queue()
    board.execute("UPDATE runs SET attempt = 4")
    run = begin(virtual).run
    ask_to_stop(run.id)
    time.move(minutes=5)
    assert rescue_once(virtual) == {**NOTHING, "cancelled": 1}
    time.move(minutes=6)
    relay_once(virtual, None)
    assert board.count("wakes") == 0


def test_one_that_died_before_it_could_stop_is_cancelled(board, queue, virtual, ask_to_stop, time):
    """REC-2.10, REC-2.8: its lease runs out first; it is not given back."""
    run_id = queue()
    begin(virtual)
    time.move(seconds=50)
    ask_to_stop(run_id)
    time.move(seconds=60)
    assert rescue_once(virtual) == {**NOTHING, "cancelled": 1}
    assert state_of(board, run_id) == ("cancelled", "operator")


def test_a_renewal_does_not_lengthen_the_grace(stopping, virtual, time):
    """REC-2.10: a handler that ignores the flag, and whose lease is well kept."""
    from db import leases
    from db.engine import autocommit

    time.move(seconds=20)
    with autocommit(virtual) as connection:
        assert leases.renew(connection, stopping.id, stopping.lease_token) is True
    time.move(seconds=30)
    assert rescue_once(virtual)["cancelled"] == 1


def test_the_displaced_runner_is_interrupted(board, queue, on_board, execute, virtual, monkeypatch):
    """REC-2.10, PRO-3.5: a reassignment asks the execution to stop; it ends as interrupted, and the new one starts."""
    monkeypatch.setattr(keeper, "ASK_SECONDS", 0.0)
    on_board("T1")
    run_id = queue(task="T1", reason="task_assigned")

    def work(context):
        assign_task(virtual, "m1", "T1", "bob")
        return context.cancelled()

    assert execute(work).result == "cancelled"
    assert state_of(board, run_id) == ("cancelled", "interrupted")
    assert board.run(run_id)["result"] is True
    given = []
    assert execute(lambda context: given.append(context.agent.id)).result == "finished"
    assert given == ["bob"]


@pytest.mark.parametrize("status", ["queued", "finished"])
def test_only_an_execution_is_asked(board, queue, virtual, claim, time, status):
    """REC-2.10: the flag of a run that nobody executes withdraws nothing."""
    run_id = queue()
    if status == "finished":
        board.set_status(run_id, status)
    board.execute("UPDATE runs SET cancel_requested_at = :at", at=T0)
    before = board.run(run_id)
    time.move(hours=1)
    assert rescue_once(virtual) == NOTHING
    assert board.run(run_id) == before
