"""A decision and its effect are one: of two deciders, or two deliveries, the second changes nothing (ADM-10.2)."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from office_tasks.admission import admit
from office_tasks.producers import assignments, bare, creation, pauses
from office_tasks.producers.after import stored_wakes
from tests.faults.waits import holding, in_background, until_blocked
from tests.support import T0, after

LOCK_WAKE = "SELECT 1 FROM wakes WHERE id = :id FOR UPDATE"
LOCK_RUN = "SELECT 1 FROM runs WHERE id = :id FOR UPDATE"
OTHER_DELIVERY = """
    INSERT INTO wakes (id, reason, agent_profile_id, payload, keyless_cause, producer, requested_at, state, outcome,
                       refusal, decided_at, attempts)
    VALUES (:id, 'task_assigned', 'ana', '{}', 'by_design', 'test', now(), 'decided', 'none',
            'agent_not_wakeable', now(), 1)"""
OTHER_RUN = """
    INSERT INTO runs (id, agent_profile_id, reason, payload, idempotency_key, requested_at)
    VALUES (gen_random_uuid(), 'bob', 'other', '{}', :key, now())"""
ADMITTED = {"name": "office_run_admissions_total", "reason": "task_assigned"}


@pytest.fixture
def owed(board):
    """A wake that is owed: it was assigned in a paused workspace, and whoever resumed it died before the replay."""
    bare.answered(board.ask(key="unrelated", payload={"task_id": "T9"}))
    creation.create_task(board.engine, "m0", "acme", "a task", task_id="T1", step_id="start", instant=T0)
    pauses.pause_workspace(board.engine, "m1", "acme", instant=T0)
    assert assignments.assign_task(board.engine, "m2", "T1", "ana", "bob", instant=T0)["wakes"][0]["state"] == "owed"
    board.execute("UPDATE pauses SET resumed_at = paused_at")
    (wake,) = stored_wakes(board.engine, "m2")
    return wake


def together(board, make_test_engine, wake, lock, *, on, meanwhile=None):
    """Let two deciders of one wake both wait for `lock`, release it, and return their answers."""
    with holding(board.engine, lock, **on) as held, in_background() as start:
        calls = [start(admit, make_test_engine(), wake, instant=after(minutes=1)) for _ in range(2)]
        assert len(set(until_blocked(board.engine, count=2))) == 2
        if meanwhile:
            held.execute(text(meanwhile))
        held.commit()
        return [call.result() for call in calls]


def test_of_two_deciders_on_one_owed_wake_one_decides(board, make_test_engine, owed, moved):
    """ADM-10.2, ADM-10.3: both wait for the wake's row; the second finds it decided and returns what stands there."""
    runs = board.count("runs")

    one, two = together(board, make_test_engine, owed, LOCK_WAKE, on={"id": owed.id})

    assert one == two
    assert (one.outcome, sorted([one.fresh, two.fresh])) == ("queued", [False, True])
    assert board.count("runs") == runs + 1
    assert moved(**ADMITTED, outcome="queued") == 1
    assert board.rows("SELECT attempts FROM wakes WHERE id = :id", id=owed.id)[0]["attempts"] == 1


def test_of_two_deciders_that_merge_one_merges(board, make_test_engine, owed, moved):
    """ADM-10.2: the effect of the second is undone with its decision: the count grows by one, not two."""
    target = board.ask(after(minutes=1), payload={"task_id": "T1"})

    one, two = together(board, make_test_engine, owed, LOCK_WAKE, on={"id": owed.id})

    assert one == two
    assert (one.outcome, one.run_id) == ("coalesced", target.run_id)
    assert board.run(target.run_id)["coalesced_count"] == 2
    assert moved(**ADMITTED, outcome="coalesced") == 1


def test_a_wake_superseded_while_its_decider_waits_is_not_decided(board, make_test_engine, owed):
    """ADM-10.2: an owed row that is no longer owed undoes the effect, whoever closed it."""
    runs = board.count("runs")
    closing = f"UPDATE wakes SET state = 'superseded', decided_at = now() WHERE id = '{owed.id}'"

    answers = together(board, make_test_engine, owed, LOCK_WAKE, on={"id": owed.id}, meanwhile=closing)

    assert [(answer.state, answer.outcome, answer.fresh) for answer in answers] == [("superseded", "none", False)] * 2
    assert board.count("runs") == runs


@pytest.mark.parametrize(("other_commits", "outcome"), [(True, "deduped"), (False, "queued")])
def test_two_deciders_and_a_third_that_takes_the_key(board, make_test_engine, owed, moved, other_commits, outcome):
    """ADM-6.1, ADM-10.2: with the key taken meanwhile both deciders agree on `deduped`, and only one records it."""
    with holding(board.engine, OTHER_RUN, key=owed.key) as other, in_background() as start, capture_logs() as logs:
        calls = [start(admit, make_test_engine(), owed, instant=after(minutes=1)) for _ in range(2)]
        until_blocked(board.engine, count=2)
        other.commit() if other_commits else other.rollback()
        one, two = (call.result() for call in calls)

    assert one == two
    assert one.outcome == outcome
    assert len(board.rows("SELECT 1 FROM runs WHERE idempotency_key = :key", key=owed.key)) == 1
    assert moved(**ADMITTED, outcome=outcome) == 1
    warned = [entry for entry in logs if entry["log_level"] == "warning"]
    assert [entry.get("kind") for entry in warned] == (["durable"] if other_commits else [])


@pytest.mark.parametrize("key", [None, "K"])
def test_two_deliveries_of_one_bare_wake_at_once_admit_once(board, make_test_engine, moved, key):
    """ADM-6.4, ADM-10.2, ADM-10.3: same Celery task id, with a key and without: one run, one answer, counted once."""
    wake = board.wake(wake_id="message-1", key=key)

    with holding(board.engine, OTHER_DELIVERY, id="message-1") as other, in_background() as start:
        calls = [start(admit, make_test_engine(), wake, instant=after(minutes=n)) for n in range(2)]
        until_blocked(board.engine, count=2)
        other.rollback()
        one, two = (call.result() for call in calls)

    assert one == two
    assert one.outcome == "queued"
    assert [row["id"] for row in board.runs()] == [one.run_id]
    assert board.count("wakes") == 1
    assert moved(**ADMITTED, outcome="queued") == 1


def test_two_deliveries_that_merge_at_once_merge_once(board, make_test_engine, moved):
    """ADM-6.4, ADM-10.2: the second merge stands in one statement with its record, and is undone with it."""
    target = board.ask(T0, payload={"n": 1})
    wake = board.wake(wake_id="message-1", payload={"n": 2})

    with holding(board.engine, LOCK_RUN, id=target.run_id) as held, in_background() as start:
        calls = [start(admit, make_test_engine(), wake, instant=T0) for _ in range(2)]
        until_blocked(board.engine, count=2)
        held.rollback()
        one, two = (call.result() for call in calls)

    assert one == two
    assert (one.outcome, one.run_id) == ("coalesced", target.run_id)
    assert board.run(target.run_id)["coalesced_count"] == 2
    assert moved(**ADMITTED, outcome="coalesced") == 1


def test_a_delivery_overtaken_by_another_returns_its_answer(board, make_test_engine):
    """ADM-10.2, ADM-10.3: the conflict on the wake's id undoes the inserted run; the recorded refusal is returned."""
    with holding(board.engine, OTHER_DELIVERY, id="message-1") as other, in_background() as start:
        call = start(admit, make_test_engine(), board.wake(wake_id="message-1"), instant=T0)
        until_blocked(board.engine)
        other.commit()

    assert (call.result().outcome, call.result().refusal) == ("none", "agent_not_wakeable")
    assert board.count("runs") == 0
