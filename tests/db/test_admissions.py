"""What the Admissions tab reads: each count, its edges, and that no number of rows makes it read them all."""

from __future__ import annotations

import pytest

from db import admissions, jobs
from db.admissions import Decided
from office_tasks import admin
from office_tasks.producers.pauses import pause_workspace

KNOWN = ["manual_resume", "task_assigned"]
WAKE = """
    INSERT INTO wakes (id, reason, agent_profile_id, payload, key, producer, requested_at, state, outcome, refusal,
                       observed, decided_at, mutation_id)
    SELECT :id || n, :reason, :agent, '{}', 'k', 'test', office_now() - CAST(:ago AS interval), :state, :outcome,
           :refusal, :observed, CASE WHEN :state <> 'owed' THEN office_now() - CAST(:ago AS interval) END, 'm'
    FROM generate_series(1, :times) AS n"""


@pytest.fixture
def given(board):
    def given(name, *, ago="1 minute", state="decided", outcome=None, refusal=None, **more):
        row = {"id": name, "reason": "task_assigned", "agent": "ana", "times": 1, "observed": 5, **more}
        board.execute(WAKE, **row, ago=ago, state=state, outcome=outcome, refusal=refusal)

    return given


def read(board):
    with board.engine.connect() as connection:
        return admissions.read(connection, KNOWN, "custom")


def test_an_office_without_history(board):
    found = read(board)
    assert (found.decided, found.since, found.due, found.paused, found.oldest, found.jobs) == ([], None, 0, 0, 0.0, {})


def test_decisions_are_counted_by_outcome_and_reason_within_the_hour_and_the_day(board, given):
    given("a", outcome="rate_limited", times=3)
    given("b", outcome="rate_limited", ago="61 minutes", times=2)
    given("c", outcome="rate_limited", ago="25 hours")
    given("d", outcome="deduped", reason="nightly")
    given("e", outcome="deduped", reason="weekly")
    given("f", outcome="none", refusal="agent_not_found", reason="manual_resume")
    given("g", state="superseded")
    assert read(board).decided == [
        Decided("deduped", "custom", refused=False, hour=2, day=2),
        Decided("rate_limited", "task_assigned", refused=False, hour=3, day=5),
        Decided("superseded", "task_assigned", refused=False, hour=1, day=1),
        Decided("agent_not_found", "manual_resume", refused=True, hour=1, day=1),
    ]


def test_owed_wakes_are_due_or_held_by_a_pause(board, given):
    admin.create_workspace(board.engine, "quiet")
    admin.create_agent(board.engine, "quiet", "zoe")
    pause_workspace(board.engine, "pause", "quiet", "", interrupt=False)
    given("a", state="owed", ago="10 minutes")
    given("b", state="owed", ago="5 minutes", times=2)
    given("c", state="owed", ago="1 hour", agent="zoe")
    found = read(board)
    assert (found.due, found.paused) == (3, 1)
    assert 600 <= found.oldest < 660


def test_what_each_job_did_last(board):
    with board.engine.begin() as connection:
        jobs.succeeded(connection, "recovery.relay_owed", {"admitted": 2})
    (job,) = read(board).jobs.items()
    assert (job[0], job[1].result) == ("recovery.relay_owed", {"admitted": 2})
    assert 0 <= job[1].age < 60


def test_the_newest_are_counted_when_there_are_too_many(board, given, monkeypatch):
    monkeypatch.setattr(admissions, "MOST_DECIDED", 10)
    monkeypatch.setattr(admissions, "MOST_OWED", 10)
    given("old", outcome="deduped", ago="20 hours", times=10)
    given("new", outcome="rate_limited", ago="2 hours", times=10)
    given("owed", state="owed", times=20)
    found = read(board)
    assert found.decided == [Decided("rate_limited", "task_assigned", refused=False, hour=0, day=10)]
    assert found.since is not None
    assert (found.instant - found.since).total_seconds() == pytest.approx(7_200, abs=60)
    assert found.due == 10


def test_it_reads_by_index(board, given):
    given("new", outcome="rate_limited", times=50)
    given("old", outcome="rate_limited", ago="3 days", times=5_000)
    asked = {"reasons": KNOWN, "other": "custom", "most": 100_000}
    with board.engine.connect() as connection:
        connection.exec_driver_sql("ANALYZE wakes")
        plan = "\n".join(connection.execute(EXPLAIN, asked).scalars())
    assert "ix_wakes_decided_at" in plan
    assert "Seq Scan on wakes" not in plan


EXPLAIN = type(admissions._DECIDED)(f"EXPLAIN {admissions._DECIDED.text}")
