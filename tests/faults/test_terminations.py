"""Each gate's own read, losing its backend while it waits (ADM-2.2, ADM-7.4)."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError
from structlog.testing import capture_logs

from db.errors import is_connection_lost
from office_tasks import retries
from office_tasks.admission import admit
from tests.faults.gates import DECIDES, MARK, WAKE, board_for
from tests.faults.waits import holding, in_background, terminate, terminate_whoever_waits, until_blocked
from tests.support import T0, Board


def ask(engine):
    return admit(engine, Board.wake(**WAKE), instant=T0)


@pytest.mark.parametrize("gate", [1, 2, 3, 4])
def test_a_connection_lost_in_a_gate_is_raised_as_such(board, restricted, gate):
    """ADM-7.4: a lost connection is retried by Celery without limit, whichever gate met it; nothing was written."""
    stood = board_for(board, gate)
    restricted.stall(gate)
    engine = restricted.engine()

    with restricted.latch(), in_background() as start:
        call = start(ask, engine)
        ended = terminate_whoever_waits(board.engine, call, MARK[gate])

    error = call.exception()
    assert isinstance(error, DBAPIError)
    assert is_connection_lost(error)
    assert retries.kind_of(error) is retries.CONNECTION_LOST
    assert ended == 2, "the reads together, then the gate's own"
    assert (board.count("runs"), board.count("wakes")) == (stood, stood)
    assert ask(engine).outcome == DECIDES[gate], "the retry succeeds on the same engine"


def test_a_connection_lost_in_the_count_restarts_with_the_count_taken_as_failed(board, restricted, moved):
    """ADM-7.4, ADM-5.1: the admission starts again on a fresh connection, does not count again, and admits."""
    board_for(board, 5)
    restricted.stall(5)
    engine = restricted.engine()

    with restricted.latch(), in_background() as start, capture_logs() as logs:
        call = start(ask, engine)
        ended = terminate_whoever_waits(board.engine, call, MARK[5])

    answer = call.result()
    assert ended == 2, "the reads together, then the count alone, and no third time"
    assert (answer.outcome, answer.observed) == ("queued", None)
    assert [row["idempotency_key"] for row in board.runs()] == ["other", "k1"]
    assert moved("office_assignment_rate_limit_total", reason="count_read_failed") == 1
    assert [entry["error"][:5] for entry in logs if entry["event"] == "assignment_count_failed"] == ["57P01"]


def test_a_connection_lost_in_the_reads_together_still_counts(board, restricted, moved):
    """ADM-7.4, ADM-2.5: losing the first statement is no failed count: the count is asked again, alone, and holds."""
    board_for(board, 5)
    restricted.stall(5)
    engine = restricted.engine()

    with restricted.latch() as latch, in_background() as start:
        call = start(ask, engine)
        terminate(board.engine, until_blocked(board.engine, like=MARK[5])[0])
        until_blocked(board.engine, like=MARK[5])
        latch.rollback()

    assert (call.result().outcome, call.result().observed) == ("queued", 1)
    assert moved("office_assignment_rate_limit_total", reason="count_read_failed") == 0


def test_a_connection_lost_in_the_insert_ends_in_one_row(board, make_test_engine):
    """ADM-7.4, ADM-6.1: what dies inside the deciding statement leaves nothing behind and is asked again."""
    engine = make_test_engine()
    board.ask(T0, key="other", payload={"task_id": "T2"})

    with holding(board.engine, "LOCK TABLE runs IN SHARE MODE") as held, in_background() as start:
        call = start(ask, engine)
        terminate(board.engine, until_blocked(board.engine)[0])
        until_blocked(board.engine)
        held.rollback()

    assert call.result().outcome == "queued"
    assert sorted(row["idempotency_key"] for row in board.runs()) == ["k1", "other"]
    assert board.count("wakes") == 2
