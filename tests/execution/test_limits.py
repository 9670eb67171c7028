"""A handler that takes too long, and an ending that cannot be written at once: the run says what became of it."""

from __future__ import annotations

import datetime as dt
from threading import Event

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from sqlalchemy.exc import IntegrityError
from structlog.testing import capture_logs

from db import leases
from office_tasks.execution import execute
from office_tasks.execution.execute import execute_next
from tests.execution.handlers import PATH, playing, raising
from tests.execution.seen import is_quiet
from tests.faults.waits import holding, in_background, until_blocked
from tests.nodes.waiting import until
from tests.support import T0

LIMIT = 0.05


@pytest.fixture
def limited(virtual):
    """Return a function that executes the next run under a limit."""

    def run(work, limit=LIMIT):
        with playing(work):
            return execute_next(virtual, PATH, limit)

    return run


def test_a_handler_whose_time_is_up_is_asked_to_stop(board, queue, limited):
    """REC-2.9, REC-2.10: what it returns within the grace is its result, for it did stop."""
    run_id = queue()

    def work(context):
        assert not context.cancelled()
        until(context.cancelled, timeout=10)
        return "as far as I came"

    assert limited(work, 0.5).result == "finished"
    assert board.run(run_id)["result"] == "as far as I came"


def test_without_a_limit_nobody_is_asked(queue, limited):
    """REC-2.9: none is the default."""
    queue()
    assert limited(lambda context: context.cancelled(), None).ending.result == "false"


def test_a_handler_that_ignores_it_is_given_up(board, queue, limited, monkeypatch):
    """REC-2.9, issue "bad input": after the grace the attempt has failed; what comes later is lost."""
    monkeypatch.setattr(leases, "GRACE", dt.timedelta(seconds=LIMIT))
    run_id = queue()

    def work(_context):
        until(lambda: board.run(run_id)["status"] != "claimed", timeout=10)
        return "too late"

    over = limited(work)
    row = board.run(run_id)
    assert (over.result, row["status"], row["result"]) == ("lost", "queued", None)
    assert row["error"] == "the handler did not stop after OFFICE_RUN_TIME_LIMIT, 0.05 s"
    assert row["scheduled_retry_at"] > T0
    assert is_quiet(row)


def test_the_last_attempt_that_is_given_up_fails(board, queue, limited, monkeypatch):
    """REC-2.7, REC-2.9: the limit is a failure like any other."""
    monkeypatch.setattr(leases, "GRACE", dt.timedelta(seconds=LIMIT))
    run_id = queue()
    board.execute("UPDATE runs SET attempt = 4")
    assert limited(lambda _context: until(lambda: board.run(run_id)["status"] == "failed", timeout=10)).result == "lost"
    assert board.run(run_id)["status"] == "failed"


def test_a_handler_that_is_interrupted_by_its_limit(board, queue, limited):
    """REC-2.9, issue "bad input": Celery raises in it; the run says how long it was allowed."""
    run_id = queue()
    assert limited(raising(SoftTimeLimitExceeded()), 90).result == "retried"
    assert board.run(run_id)["error"] == "the handler took longer than OFFICE_RUN_TIME_LIMIT, 90 s"


@pytest.fixture
def impatient(time, make_test_engine, monkeypatch):
    """An engine that waits for no lock for long, and an ending that is tried again soon."""
    monkeypatch.setattr(execute, "ENDING_GAP_SECONDS", 0.01)
    return time.rule(make_test_engine(session={"lock_timeout": "50"}))


@pytest.mark.parametrize("attempt", [1, 5])
def test_an_ending_is_written_again_until_it_stands(board, queue, impatient, attempt):
    """REC-2.4, REC-2.8: what a handler did is not done twice because a row was held, or Postgres away, for a while."""
    run_id = queue()
    board.execute("UPDATE runs SET attempt = :before", before=attempt - 1)
    held, done = Event(), Event()

    def work(_context):
        held.set()
        assert done.wait(10)
        if attempt == 5:
            raise RuntimeError("E")

    with capture_logs() as logs, playing(work), in_background() as start:
        call = start(execute_next, impatient, PATH)
        assert held.wait(10)
        with holding(board.engine, "SELECT 1 FROM runs WHERE id = :id FOR UPDATE", id=run_id):
            done.set()
            until(lambda: [entry["event"] for entry in logs].count("run_end_not_written") >= 3)
            until_blocked(board.engine)
        assert call.result().result == ("failed" if attempt == 5 else "finished")
    assert board.run(run_id)["status"] == ("failed" if attempt == 5 else "finished")
    assert is_quiet(board.run(run_id))


def test_an_ending_that_can_never_be_written_is_not_insisted_upon(board, queue, impatient, forbid):
    """REC-2.8: what no repetition mends is raised at once; the run is found by its lease."""
    run_id = queue()
    forbid("status = 'finished'")
    with playing(lambda _context: None), pytest.raises(IntegrityError, match="forbidden"):
        execute_next(impatient, PATH)
    assert board.run(run_id)["status"] == "claimed"
