"""The edges of the three windows, and whose clock they are measured by."""

from __future__ import annotations

import datetime as dt
import time

import pytest
from sqlalchemy import text

from db.engine import make_engine
from office_tasks.admission import (
    ALLOWANCE_WINDOW,
    ASSIGNMENT_ALLOWANCE,
    COALESCE_WINDOW,
    DUPLICATE_LOOKBACK,
    admit,
)
from tests.admission.rows import store_agent_assignments, store_run
from tests.support import T0, Board

MILLISECOND = dt.timedelta(milliseconds=1)
SKEW = 15 * 60
AGENT_WAKE = {"task_id": "T1", "actor_type": "agent"}


def duplicate(board, age):
    store_run(board, T0 - age, key="k", status="finished")
    return Board.wake(key="k", reason="other"), ("deduped", "recent_duplicate")


def mergeable(board, age):
    store_run(board, T0 - age)
    return Board.wake(), ("coalesced", "coalesce")


def exhausting(board, age):
    store_agent_assignments(board, *[T0 - age] * ASSIGNMENT_ALLOWANCE)
    return Board.wake(payload=AGENT_WAKE), ("rate_limited", "assignment_allowance")


WINDOWS = [(duplicate, DUPLICATE_LOOKBACK), (mergeable, COALESCE_WINDOW), (exhausting, ALLOWANCE_WINDOW)]
BEYOND = {duplicate: ("deduped", "insert"), mergeable: ("queued", "insert"), exhausting: ("queued", "insert")}
EDGES = [(-MILLISECOND, True), (dt.timedelta(), False), (MILLISECOND, False)]


@pytest.fixture(params=["UTC", "Pacific/Auckland", "America/St_Johns"])
def in_time_zone(request, acme, admission_url):
    """An engine whose sessions live in some time zone."""
    engine = make_engine(admission_url, session={"TimeZone": request.param})
    yield engine
    engine.dispose()


@pytest.mark.parametrize(("outside", "counts"), EDGES, ids=["1 ms inside", "on the edge", "1 ms outside"])
@pytest.mark.parametrize(("seed", "window"), WINDOWS, ids=["24 h", "5 s", "10 min"])
def test_just_inside_counts_and_the_edge_does_not(acme, in_time_zone, seed, window, outside, counts):
    """C32, ADM-3.2, ADM-4.2, ADM-5.2: half-open, in any time zone: exactly on the edge is outside."""
    asked, inside = seed(acme, window + outside)
    answer = admit(in_time_zone, asked, instant=T0)
    assert (answer.outcome, answer.gate) == (inside if counts else BEYOND[seed])


@pytest.mark.parametrize("skew", [SKEW, -SKEW], ids=["fast", "slow"])
@pytest.mark.parametrize(("seed", "window"), WINDOWS, ids=["24 h", "5 s", "10 min"])
def test_a_skewed_worker_clock_moves_no_window(acme, admission_url, monkeypatch, skew, seed, window):
    """C32, ADM-2.3: a worker 15 min fast or slow gives the same answers: the server's instant decides."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + skew)
    monkeypatch.setattr(time, "time_ns", lambda: int((real() + skew) * 1e9))
    engine = make_engine(admission_url, session={"office.now": T0.isoformat()})
    asked, inside = seed(acme, window - MILLISECOND)
    answer = admit(engine, asked)
    assert (answer.outcome, answer.gate) == inside
    acme.execute("DELETE FROM runs")
    asked, _ = seed(acme, window)
    answer = admit(engine, asked)
    assert (answer.outcome, answer.gate) == BEYOND[seed]
    engine.dispose()


def test_the_window_is_measured_from_the_call_not_from_its_callers_transaction(acme):
    """C32: in a transaction that has been open for a while, the instant is that of the call."""
    with acme.engine.connect() as connection, connection.begin():
        opened, called = connection.execute(text("SELECT now(), clock_timestamp()")).one()
        answer = admit(acme.engine, Board.wake())
        assert opened < called <= acme.run(answer.run_id)["requested_at"]
        assert connection.execute(text("SELECT office_now() > now()")).scalar_one()


def test_two_calls_in_one_transaction_have_their_own_instants(acme):
    """C32, ADM-2.3: one instant per attempt."""
    with acme.engine.connect() as connection, connection.begin():
        connection.execute(text("SELECT now()"))
        first, second = (admit(acme.engine, Board.wake(reason=reason)) for reason in "ab")
    assert acme.run(first.run_id)["requested_at"] < acme.run(second.run_id)["requested_at"]
