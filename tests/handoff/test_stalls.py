"""Admission that stalls: the message is not lost, and is admitted once when the stall is over (C08)."""

from __future__ import annotations

import pytest

from tests.faults.waits import holding, until_blocked
from tests.integration.caller import retries
from tests.integration.faults import setting
from tests.nodes.waiting import until

SHORT = {"OFFICE_VISIBILITY_TIMEOUT": "6", "OFFICE_TIME_LIMIT": "5", "OFFICE_SOFT_TIME_LIMIT": "2"}
# One reason whose runs wait for a latch; the others pass.
LATCH = """
    CREATE FUNCTION latched() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.reason = 'stalled' THEN PERFORM pg_advisory_xact_lock(4712); END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER latched BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION latched()"""


def retried(workers, result):
    return [gap for worker in workers for gap in retries(worker.logs(), result.id)]


def test_a_lock_that_outlasts_every_timeout(start_worker, caller):
    """C08, ADM-7.4: two workers, no key, a lock longer than lock_timeout, twice: tried again, one row."""
    workers = [start_worker(concurrency=1, wait=False) for _ in range(2)]
    assert all(worker.ready() for worker in workers)
    with holding(caller.board.engine, "LOCK TABLE runs IN SHARE MODE") as held:
        result = caller.send("queue_run", "ana", "manual_resume")
        mutation = caller.send("create_task", "acme", "x", task_id="T1", step_id="start", assignee_id="bob")
        until(lambda: retried(workers, result), 30, "the stalled wake is put off")
        until(lambda: caller.board.rows("SELECT settled_at FROM mutations"), 30, "the mutation commits")
        held.rollback()
    assert result.get(timeout=30)["outcome"] == "queued"
    assert mutation.get(timeout=30)["task_id"] == "T1"
    assert [wake["agent_profile_id"] for wake in caller.board.wakes() if wake["id"] == result.id] == ["ana"]
    assert len([run for run in caller.board.runs() if run["agent_profile_id"] == "ana"]) == 1


def test_a_locked_task_is_assigned_later(worker, caller):
    """C08, ADM-7.4, PRO-6.2: somebody holds the task's row longer than lock_timeout: assigned once, woken once."""
    caller.ask("create_task", "acme", "x", task_id="T1", step_id="start")
    with holding(caller.board.engine, "SELECT 1 FROM tasks FOR UPDATE") as held:
        result = caller.send("assign_task", "T1", "ana")
        until(lambda: retried([worker], result), 30, "the stalled assignment is put off")
        held.rollback()
    done = result.get(timeout=30)
    assert (done["generation"], done["wakes"][0]["outcome"]) == (1, "queued")
    assert len(caller.board.runs()) == 1


@pytest.mark.office_worker(concurrency=1, env=SHORT)
def test_the_soft_time_limit_strikes_while_postgres_waits(worker, caller):
    """C08: cut off in the middle of the deciding statement: tried again, one row; the child's connection is sound."""
    with holding(caller.board.engine, "LOCK TABLE runs IN SHARE MODE") as held:
        result = caller.send("queue_run", "ana", "manual_resume")
        until_blocked(caller.board.engine)
        until(lambda: retried([worker], result), 30, "the message is put off")
        held.rollback()
    assert result.get(timeout=30)["outcome"] == "queued"
    assert [caller.ask("queue_run", "ana", f"next-{n}")["outcome"] for n in range(3)] == ["queued"] * 3
    assert len(caller.board.runs()) == len(caller.board.wakes()) == 4


def test_a_stall_anywhere_ends_within_the_visibility_timeout(start_worker, caller, arm):
    """C08: two workers, shortest limits: what stalls is cut off and put off, so no second copy runs beside it."""
    gate = arm("pause")
    env = {**SHORT, **setting(gate.at("before_deciding"))}
    workers = [start_worker(concurrency=1, wait=False, env=env) for _ in range(2)]
    assert all(worker.ready() for worker in workers)
    gate.once()
    result = caller.send("queue_run", "ana", "manual_resume")
    until(lambda: len(retried(workers, result)) >= 2, 40, "put off twice")
    gate.off()
    assert result.get(timeout=30)["outcome"] == "queued"
    assert len(caller.board.runs()) == len(caller.board.wakes()) == 1
    assert caller.board.count("deliveries") == 0


@pytest.mark.office_worker(concurrency=2)
def test_a_stalled_child_holds_up_no_other_message(worker, caller):
    """R01: one of two children stalls; twenty short calls are done meanwhile, none of them waits behind it."""
    caller.board.execute(LATCH)
    with holding(caller.board.engine, "SELECT pg_advisory_xact_lock(4712)") as held:
        stalled = caller.send("queue_run", "ana", "stalled")
        until_blocked(caller.board.engine)
        short = [caller.send("queue_run", "ana", f"short-{n}") for n in range(20)]
        assert {each.get(timeout=20)["outcome"] for each in short} == {"queued"}
        assert not stalled.ready()
        held.rollback()
    assert stalled.get(timeout=30)["outcome"] == "queued"
    assert len(caller.board.runs()) == 21
