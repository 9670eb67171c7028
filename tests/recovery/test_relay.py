"""What nobody settled the relay settles, what is owed it admits: bounded, oldest first, nobody held up (REC-3.1)."""

from __future__ import annotations

from threading import Barrier

import pytest
from sqlalchemy.orm import Session

from office_tasks import admin
from office_tasks.in_session import enqueue
from office_tasks.producers.pauses import pause_workspace, resume_workspace
from recovery.relay import relay_once
from tests.faults.waits import in_background
from tests.support import T0, after

NOTHING = {"settled": 0, "failed": 0, "decided": 0, "still_owed": 0, "published": 0}
# A fault of one agent's runs alone.
BOBS_RUNS_FAIL = """
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.agent_profile_id = 'bob' THEN RAISE EXCEPTION 'not bob'; END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER fail BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION fail()"""


def wake(board, wake_id):
    return board.rows("SELECT * FROM wakes WHERE id = :id", id=wake_id)[0]


def unsettled(board):
    return {row["id"] for row in board.rows("SELECT id FROM mutations WHERE settled_at IS NULL")}


def test_what_a_dead_worker_left_is_settled_once(board, leave_owed, at):
    """PRO-6.1, REC-3.1: the mutation is settled with its result, its wake admitted; the next pass finds nothing."""
    owed = leave_owed(1)
    later = at(seconds=10)
    assert relay_once(later, None) == {**NOTHING, "settled": 1}
    assert (wake(board, owed)["state"], wake(board, owed)["outcome"]) == ("decided", "queued")
    (row,) = board.rows("SELECT result FROM mutations WHERE id = 'm1'")
    assert row["result"]["runs"] == [str(board.runs()[0]["id"])]
    assert relay_once(later, None) == NOTHING
    assert board.count("runs") == 1


def test_the_fast_path_has_its_time(board, leave_owed, at):
    """REC-3.1: within the grace the relay leaves to the message what the message may still be doing."""
    leave_owed(1)
    assert relay_once(at(seconds=1 + 1.99), None) == NOTHING
    assert relay_once(at(seconds=1 + 2), None)["settled"] == 1


def test_a_pass_is_bounded_and_takes_the_oldest(board, leave_owed, at):
    """REC-3.1: three at a time, in the order in which they were committed."""
    for number in (5, 3, 1, 7, 2, 6, 4):
        leave_owed(number)
    passes = []
    for _ in range(4):
        before = unsettled(board)
        relay_once(at(minutes=1), None, batch=3)
        passes.append(sorted(before - unsettled(board)))
    assert passes == [["m1", "m2", "m3"], ["m4", "m5", "m6"], ["m7"], []]


@pytest.mark.parametrize("batch", [1, 2, 200])
def test_a_paused_backlog_holds_up_nobody(board, leave_owed, at, batch):
    """REC-3.1, PRO-6.4: older wakes of a paused workspace are not even tried."""
    admin.create_workspace(board.engine, "quiet", workflow_id="flow")
    admin.create_agent(board.engine, "quiet", "quinn")
    pause_workspace(board.engine, "p", "quiet", instant=T0)
    with Session(board.engine) as session:
        waiting = [enqueue(session, "quinn", f"reason-{n}") for n in range(5)]
        session.commit()
    board.execute("UPDATE mutations SET settled_at = committed_at, result = '{}'")
    board.execute("UPDATE wakes SET requested_at = :at", at=T0)
    owed = leave_owed(1)
    board.execute("UPDATE mutations SET settled_at = committed_at, result = '{}' WHERE id = 'm1'")
    assert relay_once(at(minutes=1), None, batch=batch) == {**NOTHING, "decided": 1}
    assert wake(board, owed)["outcome"] == "queued"
    tried = [(wake(board, f"{each}#1")["state"], wake(board, f"{each}#1")["attempts"]) for each in waiting]
    assert tried == [("owed", 0)] * 5
    resume_workspace(board.engine, "r", "quiet", after(minutes=2))
    assert board.count("runs") == 6


def test_wakes_that_always_raise_hold_up_nobody(board, leave_owed, at):
    """REC-3.1, PRO-5.3: five older ones raise at every attempt; the healthy one is reached in three passes of two."""
    board.execute(BOBS_RUNS_FAIL)
    broken = [leave_owed(number, "bob") for number in range(1, 6)]
    healthy = leave_owed(6)
    passes = 0
    while wake(board, healthy)["state"] == "owed":
        passes += 1
        assert passes <= 3
        relay_once(at(seconds=10 + 5 * passes), None, batch=2)
    assert {wake(board, each)["state"] for each in broken} == {"owed"}
    assert wake(board, broken[0])["last_error"] == "P0001: RaiseException"


def test_the_gap_doubles_from_five_seconds_to_ten_minutes(board, leave_owed, at):
    """REC-3.1: each attempt that raises records its error and doubles the gap; none comes before its time."""
    board.execute(BOBS_RUNS_FAIL)
    owed, gaps, now = leave_owed(1, "bob"), [], after(minutes=1)
    for _ in range(10):
        relay_once(at(seconds=(now - T0).total_seconds()), None)
        due = wake(board, owed)["next_attempt_at"]
        gaps.append((due - now).total_seconds())
        assert relay_once(at(seconds=(due - T0).total_seconds() - 0.01), None)["still_owed"] == 0
        now = due
    assert gaps == [5, 10, 20, 40, 80, 160, 320, 600, 600, 600]
    assert wake(board, owed)["attempts"] == 10
    board.execute("DROP TRIGGER fail ON runs")
    assert relay_once(at(seconds=(now - T0).total_seconds()), None) == {**NOTHING, "decided": 1}
    assert (wake(board, owed)["outcome"], wake(board, owed)["next_attempt_at"]) == ("queued", None)


def test_a_payload_that_reads_back_longer_holds_up_nobody(board, leave_owed, at):
    """REC-3.1, ADM-8.1: 1e300 is five characters when asked and 301 when read: admitted all the same."""
    with Session(board.engine) as session:
        long = enqueue(session, "bob", "numbers", {"n": [1e300] * 2_000})
        session.commit()
    board.execute("UPDATE mutations SET committed_at = :at", at=T0)
    board.execute("UPDATE wakes SET requested_at = :at", at=T0)
    healthy = leave_owed(1)
    assert relay_once(at(minutes=1), None) == {**NOTHING, "settled": 2}
    assert wake(board, healthy)["outcome"] == wake(board, f"{long}#1")["outcome"] == "queued"


def test_a_wake_whose_pause_cannot_be_read_stays_owed(board, leave_owed, at):
    """ADM-2.6, REC-3.1: unreadable is not unpaused: tried again, later each time, and admitted once it can be read."""
    owed = leave_owed(1)
    board.execute("UPDATE agents SET workspace_id = NULL WHERE id = 'ana'")
    relay_once(at(minutes=1), None)
    assert (wake(board, owed)["state"], wake(board, owed)["next_attempt_at"]) == ("owed", after(minutes=1, seconds=5))
    board.execute("UPDATE agents SET workspace_id = 'acme' WHERE id = 'ana'")
    assert relay_once(at(minutes=2), None)["decided"] == 1
    assert wake(board, owed)["outcome"] == "queued"


def test_a_refusal_of_gate_one_closes_the_wake(board, leave_owed, at):
    """PRO-6.4: nobody tries an agent that may not be woken again and again; the sweep finds its task."""
    owed = leave_owed(1)
    admin.set_agent_status(board.engine, "ana", "stopped")
    relay_once(at(minutes=1), None)
    closed = wake(board, owed)
    assert (closed["state"], closed["outcome"], closed["refusal"]) == ("decided", "none", "agent_not_wakeable")
    admin.set_agent_status(board.engine, "ana", "active")
    assert relay_once(at(minutes=2), None) == NOTHING
    assert board.count("runs") == 0


def test_two_relays_at_once_do_everything_once(board, leave_owed, at):
    """REC-3.4, PRO-6.2: two passes over the same thirty, at one instant, on connections of their own: thirty runs."""
    owed = {leave_owed(number) for number in range(1, 31)}
    start = Barrier(2)

    def tick(engine):
        start.wait(10)
        return relay_once(engine, None)

    with in_background() as submit:
        calls = [submit(tick, at(minutes=1)) for _ in range(2)]
        done = [call.result() for call in calls]

    assert [each["failed"] + each["still_owed"] for each in done] == [0, 0]
    assert {row["id"] for row in board.wakes() if row["outcome"] == "queued"} == owed
    assert board.count("runs") == 30
    assert unsettled(board) == set()
