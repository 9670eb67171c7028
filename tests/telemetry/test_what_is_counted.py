"""What the counters and gauges of real workers say when commits fail, beat hangs, and ticks raise."""

from __future__ import annotations

import datetime as dt
import sys
import time

import pytest

from office_tasks.doctor import database
from tests.integration.faults import setting
from tests.nodes.waiting import until
from tests.nodes.worker import inherited
from tests.telemetry.scraping import ADMISSIONS, LAST_SUCCESS, RECOVERY

# Of tests.recovery.quick, which changes the app of whoever imports it.
JOB = "recovery.recover_unstarted_tasks"
INTERVAL = 1

# The first commit of a run fails as one that lost a race does; a sequence remembers it, as it is not rolled back.
FAIL_THE_FIRST_COMMIT = """
    CREATE SEQUENCE commits;
    CREATE FUNCTION fail_the_first() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF nextval('commits') = 1 THEN RAISE EXCEPTION 'not yet' USING ERRCODE = '40001'; END IF;
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER fail_the_first AFTER INSERT ON runs DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION fail_the_first()"""


@pytest.mark.office_worker(concurrency=2)
def test_a_commit_that_failed_was_not_counted(worker, caller, endpoint):
    """R12: the first commit fails and the retry passes: queued 1, rows 1."""
    caller.board.execute(FAIL_THE_FIRST_COMMIT)
    assert caller.ask("queue_run", "ana", "r")["outcome"] == "queued"
    assert caller.board.rows("SELECT last_value AS n FROM commits") == [{"n": 2}]
    assert len(caller.board.runs()) == 1
    assert endpoint.total(ADMISSIONS) == endpoint.total(ADMISSIONS, outcome="queued") == 1


@pytest.mark.office_worker(concurrency=2)
def test_who_dies_before_the_decision_counted_nothing(start_worker, caller, endpoint, arm):
    """R12: kill -9 before the decision, and the redelivery passes: queued 1, rows 1."""
    fault = arm("kill")
    start_worker(env=setting(fault.at("before_deciding")))
    fault.once()
    assert caller.ask("queue_run", "ana", "r")["outcome"] == "queued"
    fault.struck()
    assert len(caller.board.runs()) == 1
    assert endpoint.total(ADMISSIONS) == endpoint.total(ADMISSIONS, outcome="queued") == 1


@pytest.fixture
def quick_beat(node_engine, office_env, tmp_path):
    """A real beat that ticks the sweep every second."""
    words = ["-m", "celery", "-A", "tests.recovery.quick", "beat", f"--schedule={tmp_path / 'quick'}", "--pidfile="]
    handle = node_engine.run([sys.executable, *words], name="quick", env={**inherited(), **office_env})
    yield handle
    node_engine.remove(handle)


def last_success(endpoint):
    return endpoint.total(LAST_SUCCESS, job=JOB)


def health(board):
    """Return what `office doctor` makes of beat, by the schedule of these tests."""
    found = database.examine(board.engine, {JOB: dt.timedelta(seconds=INTERVAL)})
    return [finding.level for finding in found if finding.check == "beat"]


def ticks(endpoint, result):
    return endpoint.total(RECOVERY, job=JOB, result=result)


@pytest.mark.office_worker(concurrency=2, queues="recovery")
def test_a_beat_that_hangs_shows(board, quick_beat, worker, endpoint):
    """C37: a tick that finds nothing is a success; beat is suspended, its last success goes stale, a health check
    fails, and both recover."""
    until(lambda: ticks(endpoint, "done") >= 2, what="two ticks")
    assert board.count("runs") == 0
    assert last_success(endpoint) == pytest.approx(time.time(), abs=INTERVAL * 3)
    assert health(board) == ["ok"]
    quick_beat.pause()
    until(lambda: time.time() - last_success(endpoint) > 3 * INTERVAL, what="three intervals without a success")
    stale, done = last_success(endpoint), ticks(endpoint, "done")
    until(lambda: health(board) == ["error"], 40, "a health check that fails")
    assert (last_success(endpoint), ticks(endpoint, "done"), ticks(endpoint, "failed")) == (stale, done, 0)
    quick_beat.unpause()
    until(lambda: last_success(endpoint) > stale, what="beat goes on")
    assert health(board) == ["ok"]


@pytest.mark.office_worker(concurrency=2, queues="recovery")
def test_ticks_that_raise_show(board, quick_beat, worker, endpoint):
    """C37: every tick raises: the failure counter rises, and the last success does not move."""
    until(lambda: ticks(endpoint, "done"), what="a tick")
    board.execute("ALTER TABLE tasks RENAME TO elsewhere")
    until(lambda: ticks(endpoint, "failed") >= 1, what="a tick that fails")
    stands, done = last_success(endpoint), ticks(endpoint, "done")
    until(lambda: ticks(endpoint, "failed") >= 4, what="three more of them")
    assert (last_success(endpoint), ticks(endpoint, "done")) == (stands, done)
    board.execute("ALTER TABLE elsewhere RENAME TO tasks")
    until(lambda: last_success(endpoint) > stands, what="ticks succeed again")
