"""Each gate's own read, running into a time-out: each failure takes its own direction (ADM-2, the table)."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from db.errors import is_connection_lost, sqlstate
from office_tasks.admission import admit
from tests.faults.gates import DECIDES, QUESTION, WAKE, board_for
from tests.faults.waits import holding
from tests.support import T0, Board

TIMEOUTS = {"57014": {"statement_timeout": "150"}, "55P03": {"lock_timeout": "150"}}


def ask(engine, **more):
    return admit(engine, Board.wake(**WAKE), instant=T0, **more)


@pytest.fixture(params=TIMEOUTS)
def state(request):
    """The SQLSTATE of a statement that ran too long, or waited too long for a lock."""
    return request.param


@pytest.mark.parametrize("gate", [1, 3, 4])
def test_a_read_that_times_out_is_an_error_and_writes_nothing(board, restricted, state, gate):
    """ADM-2.2: gates 1, 3 and 4 give the caller the time-out of their own read, at once: it is no lost connection."""
    stood = board_for(board, gate)
    restricted.stall(gate)
    engine = restricted.engine(**TIMEOUTS[state])

    with restricted.latch(), pytest.raises(DBAPIError) as caught:
        ask(engine)

    assert f"AS {QUESTION[gate]}" in caught.value.statement
    assert sqlstate(caught.value) == state
    assert not is_connection_lost(caught.value)
    assert (board.count("runs"), board.count("wakes")) == (stood, stood)
    assert ask(engine).outcome == DECIDES[gate], "the same engine goes on once the fault is over"


def test_a_pause_that_times_out_is_a_pause(board, restricted, state):
    """ADM-2, C12: gate 2 fails closed."""
    restricted.stall(2)
    engine = restricted.engine(**TIMEOUTS[state])

    with restricted.latch():
        answer = ask(engine)

    assert (answer.outcome, answer.refusal) == ("none", "pause_gate_unavailable")
    assert board.count("runs") == 0
    assert ask(engine).outcome == "queued"


def test_a_count_that_times_out_lets_the_wake_pass(board, restricted, state, moved):
    """ADM-2.2, ADM-5.1: gate 5 fails open; the statement that timed out poisons nothing."""
    stood = board_for(board, 5)
    restricted.stall(5)
    engine = restricted.engine(**TIMEOUTS[state])

    with restricted.latch():
        answer = ask(engine)

    assert (answer.outcome, answer.observed) == ("queued", None)
    assert board.count("runs") == stood + 1
    assert moved("office_assignment_rate_limit_total", reason="count_read_failed") == 1


def test_an_insert_that_times_out_is_an_error(board, restricted, state):
    """ADM-2, ADM-6.1: gate 6 gives the error to the caller, nothing written, no wake recorded."""
    engine = restricted.engine(**TIMEOUTS[state])

    with holding(board.engine, "LOCK TABLE runs IN SHARE MODE"), pytest.raises(DBAPIError) as caught:
        ask(engine)

    assert "INSERT INTO runs" in caught.value.statement
    assert sqlstate(caught.value) == state
    assert (board.count("runs"), board.count("wakes")) == (0, 0)


@pytest.mark.parametrize(("table", "outcome"), [("agents", "error"), ("pauses", "pause_gate_unavailable")])
def test_a_locked_table_is_an_unreadable_one(board, make_test_engine, table, outcome):
    """ADM-2.2, C12: a lock that somebody holds on a whole table fails the gate that reads it, in its direction."""
    engine = make_test_engine(session={"lock_timeout": "150"})

    with board.engine.begin() as held:
        held.execute(text(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
        if outcome == "error":
            with pytest.raises(DBAPIError) as caught:
                ask(engine)
            assert sqlstate(caught.value) == "55P03"
        else:
            assert ask(engine).refusal == outcome

    assert board.count("runs") == 0
