"""ADM-4.4: a merge never lands on a row that has stopped being queued, with real connections and under real races."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from sqlalchemy import text

from office_tasks.admission import admit
from tests.faults.waits import PATIENTLY, in_background, until_blocked
from tests.support import T0

CLAIM = text("""
    UPDATE runs SET status = 'claimed', lease_token = gen_random_uuid(), lease_expires_at = now(), claimed_at = now()
    WHERE id = (SELECT id FROM runs WHERE status = 'queued' ORDER BY requested_at, id
                LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id, payload""")


def race(board, make_test_engine, wake, *, claim_commits: bool):
    """Let a merge of `wake` wait for a claim of the same row, then end the claim; return the wake's answer."""
    with board.engine.connect() as claimer, in_background() as start:
        claimer.execute(PATIENTLY)
        claimed = claimer.execute(CLAIM).one()
        call = start(admit, make_test_engine(), wake, instant=T0)
        until_blocked(board.engine, like="%UPDATE runs SET payload%")
        assert not call.done()
        claimer.commit() if claim_commits else claimer.rollback()
        return claimed, call.result()


def test_a_merge_that_loses_to_a_claim_becomes_a_run_of_its_own(board, make_test_engine):
    """ADM-4.4: the claim came first: its payload stays what it saw, and the wake goes on to gates 5 and 6."""
    first = board.ask(payload={"n": 1})

    claimed, answer = race(board, make_test_engine, board.wake(payload={"n": 2}), claim_commits=True)

    assert (answer.outcome, answer.gate) == ("queued", "insert")
    assert answer.run_id != first.run_id == claimed.id
    assert (board.run(first.run_id)["payload"], board.run(first.run_id)["coalesced_count"]) == ({"n": 1}, 1)
    assert board.run(answer.run_id)["payload"] == {"n": 2}


def test_a_merge_that_loses_to_a_claim_meets_the_allowance(board, make_test_engine):
    """ADM-4.4, ADM-5.4: having missed, the wake is gate 5's, which may refuse it; a merge would have cost nothing."""
    for n in range(5):
        board.assigned(task="T1", agent="bob", key=f"task_comment:{n}")
        board.set_status(board.runs()[-1]["id"], "finished")
    board.execute("UPDATE runs SET requested_at = requested_at - interval '1 min'")
    target = board.assigned(task="T1", agent="ana", by="user")
    wake = board.wake(payload={"task_id": "T1", "actor_type": "agent", "actor_id": "bob"})

    claimed, answer = race(board, make_test_engine, wake, claim_commits=True)

    assert claimed.id == target.run_id
    assert (answer.outcome, answer.gate, answer.observed) == ("rate_limited", "assignment_allowance", 5)
    assert board.count("runs") == 6


def test_a_merge_that_loses_to_a_claim_still_meets_the_index(board, make_test_engine):
    """ADM-4.4, ADM-6.1: a key that was seen more than a day ago stops the wake at gate 6, after its merge missed."""
    old = board.ask(key="K")
    board.execute("UPDATE runs SET requested_at = requested_at - interval '25 hours'")
    board.set_status(old.run_id, "finished")
    board.ask(key="other")

    _, answer = race(board, make_test_engine, board.wake(key="K"), claim_commits=True)

    assert (answer.outcome, answer.gate, answer.run_id) == ("deduped", "insert", old.run_id)


def test_a_claim_that_rolls_back_lets_the_merge_land(board, make_test_engine):
    """ADM-4.4: the row is still queued, so the wake that waited is merged into it."""
    first = board.ask(payload={"n": 1})

    _, answer = race(board, make_test_engine, board.wake(payload={"n": 2}), claim_commits=False)

    assert (answer.outcome, answer.run_id) == ("coalesced", first.run_id)
    row = board.run(first.run_id)
    assert (row["payload"], row["coalesced_count"], row["status"]) == ({"n": 2}, 2, "queued")


def test_a_claim_sees_the_merge_it_waited_for(board, make_test_engine):
    """ADM-4.4: the merge came first, so a claim skips its row until it commits, then sees the merged payload."""
    first = board.ask(payload={"n": 1})
    with board.engine.connect() as merging:
        merging.execute(
            text("UPDATE runs SET payload = '{\"n\": 2}', coalesced_count = 2 WHERE id = :id"), {"id": first.run_id}
        )
        with make_test_engine().begin() as claimer:
            assert claimer.execute(CLAIM).one_or_none() is None
        merging.commit()

    with board.engine.begin() as claimer:
        assert claimer.execute(CLAIM).one().payload == {"n": 2}


@pytest.mark.parametrize("change", ["scheduled_retry_at = now()", "status = 'cancelled', finished_at = now()"])
def test_a_merge_misses_whatever_else_stopped_the_row_being_mergeable(board, make_test_engine, change):
    """ADM-4.2, ADM-4.4: waiting for a retry, or ended: the status is checked again under the row's lock."""
    first = board.ask(payload={"n": 1})
    with board.engine.connect() as other, in_background() as start:
        other.execute(text(f"UPDATE runs SET {change} WHERE id = :id"), {"id": first.run_id})
        call = start(admit, make_test_engine(), board.wake(payload={"n": 2}), instant=T0)
        until_blocked(board.engine)
        other.commit()

    assert call.result().outcome == "queued"
    assert board.run(first.run_id)["payload"] == {"n": 1}


def claim_all(engine, done) -> list:
    """Claim until nothing is left after `done`; return what each claim saw."""
    claimed = []
    while True:
        last = done.is_set()
        with engine.begin() as connection:
            row = connection.execute(CLAIM).one_or_none()
        if row is not None:
            claimed.append(row)
        elif last:
            return claimed


def test_no_wake_is_lost_between_merges_and_claims(board, make_test_engine):
    """ADM-4.4: 4 threads merge 240 wakes while 2 claim: each wake is counted once, each claim saw the last merge."""
    engine = make_test_engine(pool_size=6)
    done = threading.Event()

    def produce(thread: int) -> list:
        return [admit(engine, board.wake(payload={"by": [thread, n]}), instant=T0) for n in range(60)]

    with in_background() as start:
        consumers = [start(claim_all, engine, done) for _ in range(2)]
        producers = [start(produce, thread) for thread in range(4)]
        answers = [answer for producer in producers for answer in producer.result()]
        done.set()
        seen = {row.id: row.payload for consumer in consumers for row in consumer.result()}

    outcomes = Counter(str(answer.outcome) for answer in answers)
    merged = Counter(answer.run_id for answer in answers)
    runs = board.runs()
    assert outcomes["queued"] + outcomes["coalesced"] == 240
    assert outcomes["queued"] == len(runs) == len(seen)
    assert {row["id"]: row["coalesced_count"] for row in runs} == merged
    assert {row["id"]: row["payload"] for row in runs} == seen, "nothing was merged after its claim"
    assert outcomes["coalesced"], "the race was a race"
