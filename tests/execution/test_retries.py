"""What fails is tried again, later each time; the fifth failure is the last, and the coordinator hears of it."""

from __future__ import annotations

import datetime as dt

import pytest

from office_tasks import admin
from office_tasks.execution import backoff
from office_tasks.execution.context import RetryAt
from office_tasks.faults import ENVIRONMENT, FaultPointError
from recovery.relay import relay_once
from recovery.rescue import rescue_once
from tests.execution.handlers import raising
from tests.execution.seen import is_quiet
from tests.integration.faults import Fault
from tests.support import T0, after

GAPS = [dt.timedelta(minutes=minutes) for minutes in (2, 10, 30, 120)]
FAIL = raising(RuntimeError("no luck"))


def go_to(time, instant):
    time.move(seconds=(instant - T0).total_seconds())


@pytest.fixture
def fail_for_good(board, execute, time):
    """Return a function that lets a run fail five times; returns the last ending."""

    def fail(run_id, last=FAIL):
        for _ in range(4):
            assert execute(FAIL).result == "retried"
            go_to(time, board.run(run_id)["scheduled_retry_at"])
        return execute(last)

    return fail


@pytest.fixture
def ceo(board):
    admin.create_agent(board.engine, "acme", "cleo", role="ceo")
    return "cleo"


def alarms(board):
    return board.rows("SELECT * FROM wakes WHERE reason = 'agent_error'")


def test_every_gap_is_jittered_by_a_quarter():
    """REC-2.7: 2, 10, 30 and 120 minutes, 25 % more or less, and not always the same."""
    for attempt, gap in enumerate(GAPS, start=1):
        drawn = [backoff.failed(attempt, "E").gap for _ in range(500)]
        assert 0.75 * gap <= min(drawn) < 0.8 * gap
        assert 1.2 * gap < max(drawn) <= 1.25 * gap


def test_five_attempts_and_no_sixth(board, queue, execute, claim, time):
    """REC-2.7: each after its gap and not before, in its old place in the line, with its key; then failed."""
    run_id, before = queue(T0, key="K", payload={"n": 1}), T0
    for attempt, gap in enumerate(GAPS, start=1):
        over = execute(FAIL)
        row = board.run(run_id)
        assert (over.result, over.run.attempt, row["status"], row["attempt"]) == ("retried", attempt, "queued", attempt)
        assert 0.75 * gap <= row["scheduled_retry_at"] - before <= 1.25 * gap
        assert over.told()["retry_at"] == row["scheduled_retry_at"].isoformat()
        assert (row["error"], row["finished_at"], row["result"]) == ("RuntimeError: no luck", None, None)
        assert is_quiet(row)
        before = row["scheduled_retry_at"]
        go_to(time, before - dt.timedelta(milliseconds=1))
        assert claim() is None
        go_to(time, before)
    assert execute(FAIL).result == "failed"
    row = board.run(run_id)
    assert (row["status"], row["attempt"], row["finished_at"]) == ("failed", 5, before)
    assert (row["requested_at"], row["idempotency_key"], row["payload"]) == (T0, "K", {"n": 1})
    assert is_quiet(row)
    time.move(days=9)
    assert claim() is None


def test_a_retry_that_succeeds_leaves_no_error(board, queue, execute, time):
    """REC-2.7, REC-2.1: the handler sees which attempt it is; what stands at the end is how it ended."""
    run_id, seen = queue(), []

    def second_time_lucky(context):
        seen.append(context.attempt)
        if context.attempt == 1:
            raise RuntimeError
        return {"ok": True}

    assert execute(second_time_lucky).result == "retried"
    time.move(minutes=3)
    assert execute(second_time_lucky).result == "finished"
    row = board.run(run_id)
    assert seen == [1, 2]
    assert (row["error"], row["result"], row["scheduled_retry_at"]) == (None, {"ok": True}, None)


def test_a_wake_does_not_merge_into_a_retry(board, queue, execute):
    """REC-2.7, ADM-4: what is asked now is not put off until then."""
    queue(reason="task_assigned", payload={})
    execute(FAIL)
    assert board.ask(after(seconds=1), payload={}).outcome == "queued"


def test_the_coordinator_hears_of_the_fifth_failure_once(board, queue, ceo, fail_for_good):
    """REC-2.7: one wake, keyed by run and agent, admitted; its run says what failed, whose, and on which task."""
    run_id = queue(reason="task_comment", payload={"x": 1})
    assert fail_for_good(run_id).result == "failed"
    [alarm] = alarms(board)
    assert (alarm["key"], alarm["agent_profile_id"]) == (f"agent_error:{run_id}:{ceo}", ceo)
    assert (alarm["state"], alarm["outcome"], alarm["producer"]) == ("decided", "queued", "failed_run")
    woken = board.run(alarm["run_id"])
    assert woken["payload"] == {
        "failed_run_id": str(run_id), "failed_agent_id": "ana", "failed_reason": "task_comment",
    }  # fmt: skip
    [mutation] = board.rows("SELECT * FROM mutations")
    assert (mutation["id"], mutation["kind"]) == (f"failed:{run_id}", "fail_run")
    assert mutation["result"]["runs"] == [str(woken["id"])]


def test_the_alarm_names_the_task(board, queue, on_board, ceo, fail_for_good, execute):
    """REC-2.7, REC-2.3: and is executed though the task was closed meanwhile."""
    on_board("T1")
    fail_for_good(queue(task="T1"))
    [alarm] = alarms(board)
    assert alarm["task_id"] == "T1"
    board.execute("UPDATE tasks SET status = 'cancelled'")
    assert (execute().run.id, board.run(alarm["run_id"])["status"]) == (alarm["run_id"], "finished")


def test_the_coordinators_own_failure_wakes_nobody(board, queue, ceo, fail_for_good):
    """REC-2.7: it would fail again, of itself."""
    assert fail_for_good(queue(agent=ceo)).result == "failed"
    assert alarms(board) == []


def test_without_a_coordinator_nobody_is_woken(board, queue, fail_for_good):
    """REC-2.7: the run fails all the same; a coordinator of another workspace is none of this one's."""
    admin.create_workspace(board.engine, "other", workflow_id="flow")
    admin.create_agent(board.engine, "other", "otto", role="ceo")
    assert fail_for_good(queue()).result == "failed"
    assert alarms(board) == []


def test_a_coordinator_that_is_paused_is_refused_once(board, queue, ceo, fail_for_good, virtual, time):
    """REC-2.7, ADM-2: what was asked is on record, with its refusal; the run is failed, and nothing stays owed."""
    admin.set_agent_status(board.engine, ceo, "paused")
    assert fail_for_good(queue()).result == "failed"
    [alarm] = alarms(board)
    assert (alarm["state"], alarm["outcome"], alarm["refusal"]) == ("decided", "none", "agent_not_wakeable")
    time.move(days=1)
    assert relay_once(virtual, None)["decided"] == 0


def test_of_two_coordinators_one_that_can_be_woken(board, queue, ceo, fail_for_good):
    """REC-2.7: the paused one is older, and passed over."""
    admin.set_agent_status(board.engine, ceo, "paused")
    admin.create_agent(board.engine, "acme", "carl", role="ceo")
    fail_for_good(queue())
    assert [alarm["agent_profile_id"] for alarm in alarms(board)] == ["carl"]


@pytest.mark.usefixtures("ceo")
def test_in_a_paused_workspace_the_alarm_is_owed_until_it_resumes(board, queue, fail_for_good, virtual, time):
    """REC-2.7, REC-2.10, PRO-6.4: a running execution goes on and fails; its coordinator hears of it later."""

    def pause_and_fail(context):
        board.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
        FAIL(context)

    assert fail_for_good(queue(), pause_and_fail).result == "failed"
    assert [alarm["state"] for alarm in alarms(board)] == ["owed"]
    board.execute("UPDATE pauses SET resumed_at = paused_at")
    time.move(days=1)
    assert relay_once(virtual, None)["decided"] == 1
    assert [alarm["outcome"] for alarm in alarms(board)] == ["queued"]


@pytest.fixture
def dying_at(monkeypatch, tmp_path):
    """Return a function that arms a fault point, once."""

    def arm(point):
        fault = Fault("raise", tmp_path / point)
        monkeypatch.setenv(ENVIRONMENT, fault.at(point))
        fault.once()

    return arm


@pytest.mark.usefixtures("ceo")
def test_a_death_after_the_commit_is_settled_by_the_relay(board, queue, execute, virtual, time, dying_at):
    """REC-2.7, PRO-6.1: the failure and what it owes committed as one; the coordinator is woken once."""
    run_id = queue()
    board.execute("UPDATE runs SET attempt = 4")
    dying_at("after_commit")
    with pytest.raises(FaultPointError):
        execute(FAIL)
    assert board.run(run_id)["status"] == "failed"
    assert [alarm["state"] for alarm in alarms(board)] == ["owed"]
    time.move(seconds=10)
    assert relay_once(virtual, None)["settled"] == 1
    assert [(alarm["outcome"], alarm["key"]) for alarm in alarms(board)] == [("queued", f"agent_error:{run_id}:cleo")]
    assert relay_once(virtual, None)["settled"] == 0
    assert len(alarms(board)) == 1


@pytest.mark.usefixtures("ceo")
def test_a_death_before_the_commit_is_the_rescues(board, queue, execute, virtual, time, dying_at):
    """REC-2.7, REC-2.8: nothing was written, nothing is owed; the lease runs out and the run fails then."""
    run_id = queue()
    board.execute("UPDATE runs SET attempt = 4")
    dying_at("before_commit")
    with pytest.raises(FaultPointError):
        execute(FAIL)
    assert (board.run(run_id)["status"], alarms(board)) == ("claimed", [])
    time.move(seconds=60)
    assert rescue_once(virtual)["failed"] == 1
    assert [alarm["outcome"] for alarm in alarms(board)] == ["queued"]


def test_retry_at_a_time_to_come(board, queue, execute, claim, time):
    """REC-2.7: the handler's own time, without jitter; it says why."""
    run_id = queue()
    assert execute(raising(RetryAt(after(hours=7), "the shop is closed"))).result == "retried"
    row = board.run(run_id)
    assert (row["scheduled_retry_at"], row["error"]) == (after(hours=7), "RetryAt: the shop is closed")
    time.move(hours=7, seconds=-1)
    assert claim() is None
    time.move(hours=7)
    assert claim().id == run_id


@pytest.mark.parametrize("zone", [dt.UTC, dt.timezone(dt.timedelta(hours=-12)), dt.timezone(dt.timedelta(hours=14))])
def test_retry_at_means_an_instant_whatever_its_zone(board, queue, execute, zone):
    """REC-2.7: the same instant in any zone."""
    run_id = queue()
    execute(raising(RetryAt(after(hours=7).astimezone(zone))))
    assert board.run(run_id)["scheduled_retry_at"] == after(hours=7)


def test_retry_at_a_time_past_is_as_soon_as_possible(queue, execute):
    """REC-2.7: at once, and yet one of the four retries."""
    queue()
    results = [execute(raising(RetryAt(after(hours=-1)))).result for _ in range(5)]
    assert results == ["retried"] * 4 + ["failed"]


def test_retry_at_a_time_without_a_zone_is_the_handlers_error(board, queue, execute):
    """REC-2.7: it raises where it is made; the run is retried as for any other error, and says what was wrong."""
    run_id = queue()

    def naive(_context):
        raise RetryAt(after(hours=7).replace(tzinfo=None))

    assert execute(naive).result == "retried"
    row = board.run(run_id)
    assert row["error"].startswith("ValueError: RetryAt needs an instant with a time zone")
    assert row["scheduled_retry_at"] - T0 <= 1.25 * GAPS[0]


EXTREMES = {
    "the first": dt.datetime.min.replace(tzinfo=dt.UTC),
    "the last": dt.datetime.max.replace(tzinfo=dt.UTC),
    "before the first": dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=14))),
    "after the last": dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-12))),
}


@pytest.mark.parametrize("when", EXTREMES.values(), ids=EXTREMES)
def test_retry_at_the_ends_of_the_calendar(board, queue, execute, when):
    """REC-2.7: whatever a handler asks for, the run is given back in a clear state."""
    run_id = queue()

    def extreme(_context):
        raise RetryAt(when)

    assert execute(extreme).result == "retried"
    assert is_quiet(board.run(run_id))


@pytest.mark.parametrize("when", ["tomorrow", None, 5])
def test_retry_at_no_time_at_all_is_the_handlers_error(board, queue, execute, when):
    """REC-2.7: retried under the gaps."""
    run_id = queue()

    def bad(_context):
        raise RetryAt(when)

    assert execute(bad).result == "retried"
    assert board.run(run_id)["scheduled_retry_at"] - T0 <= 1.25 * GAPS[0]
