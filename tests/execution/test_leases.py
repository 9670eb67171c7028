"""Leases: a claim lasts a minute unless it is renewed; who lost it writes nothing; who died is found (REC-2.8)."""

from __future__ import annotations

import datetime as dt

import pytest

from db import endings, leases
from db.endings import Ending
from db.engine import autocommit
from db.leases import GRACE
from office_tasks import admin
from office_tasks.execution import keeper
from office_tasks.execution.begin import begin
from office_tasks.execution.end import end
from recovery.rescue import rescue_once
from tests.execution.handlers import raising
from tests.execution.seen import is_quiet
from tests.faults.waits import in_background, until_blocked
from tests.nodes.waiting import until
from tests.support import T0, after

FINISH = Ending("finish", result='"late"')
NOTHING = {"retried": 0, "failed": 0, "cancelled": 0, "left": 0}
DIED = "its lease ran out: the worker died, or stood still for a minute"
# From the second death on, as after any failure.
GAPS = [dt.timedelta(0), *(dt.timedelta(minutes=minutes) for minutes in (10, 30, 120))]


def renew(engine, run):
    with autocommit(engine) as connection:
        return leases.renew(connection, run.id, run.lease_token)


@pytest.fixture
def begun(queue, virtual):
    """Return a function that begins the next run, as a worker would that then dies: its lease is kept by nobody."""

    def start(**more):
        run_id = queue(**more)
        found = begin(virtual)
        assert found.run.id == run_id
        return found.run

    return start


@pytest.mark.parametrize("seconds", [0, 59.999])
def test_a_lease_that_has_not_run_out_is_nobody_elses(board, begun, virtual, time, seconds):
    """REC-2.8: for a minute."""
    run = begun()
    before = board.run(run.id)
    time.move(seconds=seconds)
    assert rescue_once(virtual) == NOTHING
    assert board.run(run.id) == before


def test_a_lease_that_ran_out_is_taken_over_and_given_back(board, begun, virtual, time, claim):
    """REC-2.8: a failed attempt; the first death gives the run to the next worker at once, its request as it was."""
    run = begun(key="K")
    time.move(seconds=60)
    assert rescue_once(virtual) == {**NOTHING, "retried": 1}
    row = board.run(run.id)
    assert (row["status"], row["attempt"], row["error"]) == ("queued", 1, DIED)
    assert (row["scheduled_retry_at"], row["requested_at"], row["idempotency_key"]) == (after(seconds=60), T0, "K")
    assert is_quiet(row)
    assert (claim().attempt, rescue_once(virtual)) == (2, NOTHING)


def test_a_renewed_lease_lasts_a_minute_more(board, begun, virtual, time):
    """REC-2.8: renewed every 20 s a run may take for ever."""
    run = begun()
    for twenties in range(1, 10):
        time.move(seconds=20 * twenties)
        assert renew(virtual, run) is False, "not asked to stop"
        assert rescue_once(virtual) == NOTHING
        assert board.run(run.id)["lease_expires_at"] == after(seconds=20 * twenties + 60)
    time.move(seconds=180 + 60)
    assert rescue_once(virtual)["retried"] == 1


def test_a_lost_lease_is_not_renewed(board, begun, virtual, time, claim, untouched):
    """REC-2.8, 8-engineering 1: neither given back nor claimed by another does it become the old holder's again."""
    run = begun()
    time.move(seconds=60)
    rescue_once(virtual)
    assert renew(virtual, run) is None
    assert claim().id == run.id
    same = untouched("runs", run.id)
    assert renew(virtual, run) is None
    assert same()


def test_the_lease_is_renewed_while_the_handler_runs(board, queue, execute, virtual, time, monkeypatch):
    """REC-2.8: a handler that takes ten minutes is not mistaken for a dead one, and finishes."""
    monkeypatch.setattr(keeper, "RENEWAL_SECONDS", 0.01)
    run_id = queue()

    def ten_minutes(context):
        for twenties in range(1, 31):
            time.move(seconds=20 * twenties)
            until(lambda n=twenties: board.run(run_id)["lease_expires_at"] == after(seconds=20 * n + 60))
            assert rescue_once(virtual) == NOTHING
        assert not context.cancelled()
        return "done"

    assert execute(ten_minutes).result == "finished"
    assert (board.run(run_id)["result"], board.run(run_id)["finished_at"]) == ("done", after(minutes=10))


def test_a_handler_learns_that_its_lease_is_lost(queue, execute, virtual, time, monkeypatch):
    """REC-2.8, REC-2.10: it is asked to stop, for what it does is for nothing."""
    monkeypatch.setattr(keeper, "ASK_SECONDS", 0.0)
    queue()

    def stand_still(context):
        assert not context.cancelled()
        time.move(seconds=60)
        rescue_once(virtual)
        return context.cancelled()

    over = execute(stand_still)
    assert (over.result, over.ending.result) == ("lost", "true")


@pytest.mark.parametrize("late", [FINISH, Ending("retry", error="E", gap=GAPS[1]), Ending("fail", error="E")],
                         ids=lambda ending: ending.event)  # fmt: skip
@pytest.mark.parametrize("now", ["given back", "claimed again", "finished"])
def test_the_late_writer_loses(board, begun, virtual, time, untouched, moved, late, now):
    """REC-2.8, 8-engineering 1: whatever it says and wherever the run has got to; counted, and nobody is woken."""
    admin.create_agent(board.engine, "acme", "cleo", role="ceo")
    old = begun(reason="task_comment")
    time.move(seconds=60)
    rescue_once(virtual)
    if now != "given back":
        new = begin(virtual).run
        assert new.id == old.id
    if now == "finished":
        end(virtual, new, Ending("finish", result='"in time"'))
    same = untouched("runs", old.id)
    over = end(virtual, old, late)
    assert (over.result, over.ended, over.told()["result"]) == ("lost", None, "lost")
    assert same()
    assert (board.count("wakes"), board.count("mutations")) == (0, 0)
    assert moved("office_run_executions_total", reason="task_comment", result="lost") == 1


def test_a_late_finish_in_the_middle_of_a_handler(board, queue, execute, virtual, time):
    """REC-2.8: the first worker stands still for a minute; the second has finished by the time the first goes on."""
    run_id = queue()

    def slow(context):
        assert context.attempt == 1
        time.move(seconds=60)
        assert rescue_once(virtual)["retried"] == 1
        assert execute(lambda second: second.attempt).result == "finished"
        return "too late"

    assert execute(slow).result == "lost"
    row = board.run(run_id)
    assert (row["status"], row["result"], row["attempt"]) == ("finished", 2, 2)


def test_two_rescues_at_once_take_each_claim_once(board, queue, virtual, make_test_engine, time):
    """REC-2.8, REC-3.4: one has the rows, the other passes them over and waits for nobody."""
    board.execute("UPDATE agents SET max_concurrent_sessions = 9")
    for n in range(4):
        queue(after(seconds=-n))
        begin(virtual)
    time.move(seconds=60)
    second = time.rule(make_test_engine())
    with virtual.begin() as connection:
        assert len(leases.take_over(connection, 3)) == 3
        assert rescue_once(second) == {**NOTHING, "retried": 1}
    assert rescue_once(second) == NOTHING


@pytest.mark.parametrize("rescuers", [2, 4])
def test_racing_rescues_give_each_run_back_once(board, queue, virtual, make_test_engine, time, rescuers):
    """REC-2.8, REC-3.4: together as many as there were, each run one attempt older and no more."""
    board.execute("UPDATE agents SET max_concurrent_sessions = 99")
    runs = [queue(after(seconds=-n)) for n in range(30)]
    for _ in runs:
        begin(virtual)
    time.move(seconds=60)
    engines = [time.rule(make_test_engine(pool_size=1)) for _ in range(rescuers)]
    with in_background() as start:
        done = [call.result() for call in [start(rescue_once, engine) for engine in engines]]
    assert sum(one["retried"] for one in done) == len(runs)
    assert {(row["status"], row["attempt"], row["error"]) for row in board.runs()} == {("queued", 1, DIED)}


@pytest.mark.parametrize("statistics", ["none", "of an empty table"])
def test_a_rescue_is_bounded_and_takes_the_oldest_first(board, queue, virtual, time, statistics):
    """REC-2.8, 8-engineering 3: one pass of n touches n, also by the plan of a table that was empty when analyzed."""
    if statistics != "none":
        board.execute("ANALYZE")
    board.execute("UPDATE agents SET max_concurrent_sessions = 9")
    for n in range(5):
        time.move(seconds=n)
        queue(after(seconds=n))
        begin(virtual)
    time.move(minutes=5)
    left = []
    for _ in range(3):
        assert rescue_once(virtual, batch=2)["left"] == 0
        left.append([row["requested_at"] for row in board.runs() if row["status"] == "claimed"])
    assert left == [[after(seconds=n) for n in (2, 3, 4)], [after(seconds=4)], []]


def test_a_rescue_that_dies_is_itself_rescued(board, begun, virtual, time):
    """REC-2.8, REC-3.4: what it took over is its own for a minute, then the next one's; still one attempt."""
    run = begun()
    time.move(seconds=60)
    with virtual.begin() as connection:
        [taken] = leases.take_over(connection, 9)
    assert (taken.expired, taken.run.lease_token != run.lease_token) == (True, True)
    assert (rescue_once(virtual), end(virtual, run, FINISH).result) == (NOTHING, "lost")
    time.move(seconds=120)
    assert rescue_once(virtual) == {**NOTHING, "retried": 1}
    assert board.run(run.id)["attempt"] == 1
    assert end(virtual, taken.run, FINISH).result == "lost"


def test_a_rescue_and_a_late_finish_at_once(board, begun, virtual, make_test_engine, time):
    """REC-2.8, 8-engineering 6: the finish holds the row: the rescue passes it over, and finds it finished."""
    run = begun()
    time.move(seconds=60)
    with virtual.connect() as connection:
        assert endings.end(connection, run.id, run.lease_token, FINISH)
        assert rescue_once(time.rule(make_test_engine())) == NOTHING
        connection.commit()
    assert (rescue_once(virtual), board.run(run.id)["status"]) == (NOTHING, "finished")


def test_a_late_finish_waits_for_a_rescue_and_loses(board, begun, virtual, make_test_engine, time):
    """REC-2.8, 8-engineering 6: the rescue holds the row."""
    run = begun()
    time.move(seconds=60)
    with in_background() as start, virtual.connect() as connection:
        assert len(leases.take_over(connection, 9)) == 1
        call = start(end, make_test_engine(), run, FINISH)
        until_blocked(board.engine, like="%UPDATE runs SET%")
        connection.commit()
        assert call.result().result == "lost"


def test_five_deaths_are_the_end(board, queue, virtual, time):
    """REC-2.7, REC-2.8: at once after the first, then under the gaps; the fifth fails, and the coordinator hears."""
    admin.create_agent(board.engine, "acme", "cleo", role="ceo")
    run_id, now = queue(), T0
    for attempt, gap in enumerate(GAPS, start=1):
        assert begin(virtual).run.attempt == attempt
        now += dt.timedelta(seconds=60)
        time.move(seconds=(now - T0).total_seconds())
        assert rescue_once(virtual) == {**NOTHING, "retried": 1}
        retry_at = board.run(run_id)["scheduled_retry_at"]
        assert 0.75 * gap <= retry_at - now <= 1.25 * gap
        now = retry_at
        time.move(seconds=(now - T0).total_seconds())
    assert begin(virtual).run.attempt == 5
    time.move(seconds=(now - T0).total_seconds() + 60)
    assert rescue_once(virtual) == {**NOTHING, "failed": 1}
    assert (board.run(run_id)["status"], board.run(run_id)["error"]) == ("failed", DIED)
    [alarm] = board.wakes()
    assert (alarm["key"], alarm["outcome"]) == (f"agent_error:{run_id}:cleo", "queued")


def test_a_death_after_failures_waits_like_a_failure(board, queue, execute, virtual, time):
    """REC-2.8: deaths and failures are counted together."""
    run_id = queue()
    execute(raising(RuntimeError()))
    time.move(minutes=3)
    begin(virtual)
    time.move(minutes=4)
    assert rescue_once(virtual)["retried"] == 1
    assert 0.75 * GAPS[1] <= board.run(run_id)["scheduled_retry_at"] - after(minutes=4) <= 1.25 * GAPS[1]


def test_one_that_cannot_be_ended_is_left_and_holds_up_nobody(board, queue, virtual, time, forbid):
    """REC-2.8, REC-3.4: said in the result; the next passes find it a minute later."""
    board.execute("UPDATE agents SET max_concurrent_sessions = 9")
    bad, good = queue(), queue(after(seconds=1))
    begin(virtual), begin(virtual)
    allow = forbid(f"id = '{bad}' AND status = 'queued'")
    time.move(minutes=2)
    assert rescue_once(virtual) == {**NOTHING, "retried": 1, "left": 1}
    assert (board.run(bad)["status"], board.run(good)["status"]) == ("claimed", "queued")
    allow()
    assert rescue_once(virtual) == NOTHING
    time.move(minutes=3)
    assert rescue_once(virtual)["retried"] == 1


def test_the_sessions_of_the_dead_rest(board, on_board, begun, virtual, time):
    """REC-2.5, REC-2.8: given back, the run is in no session's way; the next attempt takes it up."""
    on_board("T1")
    begun(task="T1")
    time.move(seconds=60)
    rescue_once(virtual)
    assert [row["state"] for row in board.rows("SELECT state FROM sessions")] == ["idle"]
    assert not begin(virtual).session.is_new


def test_the_grace_is_shorter_than_the_lease():
    """REC-2.8, REC-2.10: who was asked to stop and died is found by its grace."""
    assert dt.timedelta(seconds=30) == GRACE
