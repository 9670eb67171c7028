"""The engine: bounded in every wait and in its size, and no transaction left open."""

from __future__ import annotations

import psycopg
import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from db.engine import SESSION_OPTIONS, autocommit
from db.errors import is_connection_lost, sqlstate
from office_tasks import retries
from office_tasks.producers import assignments, creation
from tests.faults.waits import in_background, terminate
from tests.nodes.waiting import until
from tests.support import T0, Board, after


def test_every_wait_of_a_session_is_bounded(engine):
    """ADM-2.2, C32: time-outs, no abandoned transaction, READ COMMITTED and UTC, on each connection."""
    with autocommit(engine) as connection:
        found = {
            name: connection.execute(text(f"SELECT setting FROM pg_settings WHERE name = '{name}'")).scalar_one()
            for name in SESSION_OPTIONS
        }
        assert connection.execute(text("SHOW transaction_isolation")).scalar_one() == "read committed"

    assert found == {**SESSION_OPTIONS, "default_transaction_isolation": "read committed"}
    assert 0 < int(found["lock_timeout"]) < int(found["statement_timeout"])


def test_a_time_out_strikes(make_test_engine):
    """ADM-2.2: the time-outs are the server's own, so they end a statement that nobody waits for any more."""
    engine = make_test_engine(session={"statement_timeout": "50"})

    with pytest.raises(DBAPIError) as caught, autocommit(engine) as connection:
        connection.execute(text("SELECT pg_sleep(20)"))

    assert sqlstate(caught.value) == "57014"


def test_an_abandoned_transaction_is_ended_by_the_server(board, make_test_engine):
    """C33: who forgets a transaction loses it, not everybody else the rows that it locked."""
    engine = make_test_engine(session={"idle_in_transaction_session_timeout": "50"})
    with engine.connect() as connection:
        connection.execute(text("SELECT 1 FROM agents FOR UPDATE"))
        pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        until(lambda: not board.rows("SELECT 1 FROM pg_stat_activity WHERE pid = :pid", pid=pid), what="its end")
        with pytest.raises(DBAPIError) as caught:
            connection.execute(text("SELECT 1"))

    assert caught.value.connection_invalidated
    board.execute("UPDATE agents SET name = 'free again'")


def test_autocommit_leaves_no_transaction_open(board, make_test_engine):
    """ADM-2.5: after each statement of every outcome the backend is idle, never idle in a transaction."""
    engine = make_test_engine(pool_size=1)
    seen = []

    def look(connection, *_):
        driver = connection.connection.dbapi_connection
        states = board.rows("SELECT state FROM pg_stat_activity WHERE pid = :pid", pid=driver.info.backend_pid)
        seen.append((driver.info.transaction_status, states[0]["state"]))

    event.listen(engine, "after_cursor_execute", look)
    asked = Board(engine)
    outcomes = {
        str(answer.outcome)
        for answer in (
            asked.assigned(key="k"),
            asked.assigned(key="k"),
            asked.assigned(),
            *[asked.assigned(after(seconds=10 * n), agent="bob") for n in range(1, 7)],
            asked.ask(agent="nobody"),
        )
    }

    assert outcomes == {"queued", "deduped", "coalesced", "rate_limited", "none"}
    assert set(seen) == {(psycopg.pq.TransactionStatus.IDLE, "idle")}


def test_the_pool_is_bounded(board, make_test_engine):
    """ADM-7.4: 12 threads on a pool of 2 share two connections; none is opened beyond them."""
    engine = make_test_engine(pool_size=2)
    opened = []
    event.listen(engine, "connect", lambda *_: opened.append(1))
    asked = Board(engine)
    with in_background() as start:
        calls = [start(asked.ask, payload={"task_id": f"T{n}"}) for n in range(12)]
        outcomes = [str(call.result().outcome) for call in calls]

    assert outcomes == ["queued"] * 12
    assert len(opened) <= 2


def test_a_pool_that_stays_empty_is_an_error_that_passes(make_test_engine):
    """ADM-7.4: who finds no free connection is told so, and Celery tries again."""
    engine = make_test_engine(pool_size=1)
    engine.pool._timeout = 0.05
    with engine.connect(), pytest.raises(PoolTimeout) as caught:
        engine.connect()

    assert is_connection_lost(caught.value)
    assert retries.kind_of(caught.value) is retries.CONNECTION_LOST


def test_a_connection_closed_while_idle_is_never_handed_out(board, make_test_engine):
    """C33: a look at the socket finds it, so the next call does not pay for it with an error."""
    engine = make_test_engine(pool_size=1)
    with autocommit(engine) as connection:
        pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
    terminate(board.engine, pid)

    with autocommit(engine) as connection:
        assert connection.execute(text("SELECT pg_backend_pid()")).scalar_one() != pid


def test_admission_takes_no_part_in_its_callers_transaction(board, make_test_engine):
    """ADM-2.5: a wake admitted while the caller's transaction is open stands although that is undone."""
    with make_test_engine().connect() as callers:
        callers.execute(text("UPDATE agents SET name = 'undone'"))
        answer = board.ask(T0)
        callers.rollback()

    assert board.run(answer.run_id)["status"] == "queued"


def test_a_mutations_transaction_is_over_before_its_wakes_are_asked(board, make_test_engine):
    """PRO-6.1, ADM-2.5: a pool of one connection is enough: admission never waits for its own caller's."""
    engine = make_test_engine(pool_size=1)
    creation.create_task(engine, "m1", "acme", "a task", task_id="T1", step_id="start", instant=T0)

    assert assignments.assign_task(engine, "m2", "T1", "ana", instant=T0)["wakes"][0]["outcome"] == "queued"
