"""ADM-7.4: what Postgres says, classified by SQLSTATE, with errors that Postgres really raised."""

from __future__ import annotations

import signal

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, IntegrityError

from db.engine import autocommit, make_engine
from db.errors import brief, driver_error, is_conflict, is_connection_lost, sqlstate, violates
from office_tasks import retries
from office_tasks.devstack.ports import pick
from tests.faults.waits import in_background, terminate, until_blocked
from tests.nodes.waiting import until

LOST = ["08000", "08001", "08003", "08004", "08006", "08007", "08P01", "57P01", "57P02", "57P03", "53300"]
CONFLICTS = ["40001", "40P01"]
STALLS = ["55P03"]
OTHERS = ["57014", "57P04", "42501", "23505", "23514", "22P02", "40002", "53100", "53200", "25P02", "XX000"]


def raised(engine, statement: str) -> DBAPIError:
    with pytest.raises(DBAPIError) as caught, autocommit(engine) as connection:
        connection.execute(text(statement))
    return caught.value


@pytest.mark.parametrize("state", LOST + CONFLICTS + STALLS + OTHERS)
def test_each_state_the_server_raises_is_told_apart(worker_engine, state):
    """ADM-7.4: class 08, 57P01 to 57P03 and 53300 without limit; 40001, 40P01 and 55P03 ten times; nothing else."""
    error = raised(worker_engine, f"DO $$ BEGIN RAISE EXCEPTION 'said' USING ERRCODE = '{state}'; END $$")

    assert sqlstate(error) == state
    assert is_connection_lost(error) == (state in LOST)
    assert is_conflict(error) == (state in CONFLICTS)
    kinds = {retries.CONNECTION_LOST: LOST, retries.CONFLICT: CONFLICTS, retries.STALLED: STALLS, None: OTHERS}
    assert [kind for kind, states in kinds.items() if state in states] == [retries.kind_of(error)]
    assert brief(error) == f"{state}: {type(error.orig).__name__}", "not what a trigger says"


SECRET = "canary-7f3a"
VALUES = {
    "22P02": "SELECT CAST('canary-7f3a' AS integer)",
    "22007": "SELECT CAST('canary-7f3a' AS date)",
    "23514": "INSERT INTO wanted VALUES ('canary-7f3a', 'x')",
    "23502": "INSERT INTO wanted VALUES ('yes', NULL)",
    "23505": "INSERT INTO wanted VALUES ('yes', 'canary-7f3a'), ('yes', 'canary-7f3a')",
}


@pytest.mark.parametrize("state", VALUES)
def test_no_value_is_told(connection, state):
    """OPS-1.3, OPS-4: what a constraint found wrong and what is no number are named without what they were."""
    connection.execute(text("CREATE TEMPORARY TABLE wanted (word text CHECK (word = 'yes'), id text NOT NULL UNIQUE)"))
    with pytest.raises(DBAPIError) as caught, connection.begin_nested():
        connection.execute(text(VALUES[state]))
    assert brief(caught.value).startswith(f"{state}: ")
    assert SECRET not in brief(caught.value)
    assert ("wanted" in brief(caught.value)) == (state in ("23514", "23502", "23505"))


def test_a_terminated_backend(engine, make_test_engine):
    """ADM-7.4: 57P01, and the connection is gone."""
    with in_background() as start, engine.connect() as held:
        held.execute(text("SELECT pg_advisory_xact_lock(1)"))
        call = start(raised, make_test_engine(), "SELECT pg_advisory_xact_lock(1)")
        terminate(engine, until_blocked(engine)[0])

    assert sqlstate(call.result()) == "57P01"
    assert is_connection_lost(call.result())


def test_a_closed_port():
    """ADM-7.4, OPS-5: nobody listens: no SQLSTATE, still a lost connection, and the sentence says so."""
    error = raised(make_engine(f"postgresql+psycopg://postgres@127.0.0.1:{pick()}/office"), "SELECT 1")

    assert sqlstate(error) is None
    assert is_connection_lost(error)
    assert brief(error).startswith("no answer: ")


def test_too_many_connections(own_server):
    """ADM-7.4: a full server is one to try again."""
    hoard = make_engine(own_server.url, pool_size=20)
    held = []

    def full():
        try:
            held.append(hoard.connect())
        except DBAPIError as error:
            return error
        return None

    error = until(full, what="a full server")
    assert is_connection_lost(error)
    assert "too many clients" in str(error.orig)
    for connection in held:
        connection.close()
    hoard.dispose()


def test_a_server_that_shuts_down(own_server):
    """ADM-7.4: a server that waits for its last session takes no new one, which is to be tried again."""
    engine = make_engine(own_server.url, pool_size=2)
    with autocommit(engine) as last:
        last.execute(text("SELECT 1"))
        own_server._process.send_signal(signal.SIGTERM)

        def refused():
            try:
                psycopg.connect(own_server.url.replace("+psycopg", ""), connect_timeout=2).close()
            except psycopg.OperationalError as error:
                return error
            return None

        error = until(refused, what="a refused session")
    engine.dispose()
    own_server.restart()

    assert "shutting down" in str(error)
    assert is_connection_lost(error)


def test_a_deadlock(engine, make_test_engine):
    """ADM-7.4: 40P01, chosen by the server."""
    fast = make_test_engine(session={"deadlock_timeout": "20"})
    with engine.connect() as one, fast.connect() as two, in_background() as start:
        one.execute(text("SELECT pg_advisory_xact_lock(1)"))
        two.execute(text("SELECT pg_advisory_xact_lock(2)"))
        call = start(one.execute, text("SELECT pg_advisory_xact_lock(2)"))
        until_blocked(engine)
        with pytest.raises(DBAPIError) as caught:
            two.execute(text("SELECT pg_advisory_xact_lock(1)"))
        two.rollback()
        call.result()

    assert sqlstate(caught.value) == "40P01"
    assert is_conflict(caught.value)
    assert not is_connection_lost(caught.value)


def test_a_serialization_failure(board, make_test_engine):
    """ADM-7.4: 40001."""
    engine = make_test_engine(session={"default_transaction_isolation": "serializable"})
    with engine.connect() as one, board.engine.connect() as two:
        one.execute(text("SELECT name FROM agents"))
        two.execute(text("UPDATE agents SET name = 'first'"))
        two.commit()
        with pytest.raises(DBAPIError) as caught:
            one.execute(text("UPDATE agents SET name = 'second'"))

    assert sqlstate(caught.value) == "40001"
    assert is_conflict(caught.value)


def test_a_conflict_is_known_by_its_constraint(board):
    """ADM-6.1: a conflict on another index is another error."""
    with pytest.raises(IntegrityError) as caught:
        board.execute("INSERT INTO agents (id, name) VALUES ('ana', 'again')")

    assert violates(caught.value, "pk_agents")
    assert not violates(caught.value, "pk_wakes")
    assert not violates(ValueError("pk_agents"), "pk_agents")


def test_what_is_no_database_error():
    """ADM-7.4: errors of other kinds are neither lost connections nor conflicts, and are named by their class only."""
    for error in (ValueError("secret"), OSError("secret"), DBAPIError("SELECT 1", None, ValueError("secret"))):
        assert driver_error(error) is None
        assert sqlstate(error) is None
        assert not is_connection_lost(error)
        assert not is_conflict(error)
        assert "secret" not in brief(error)
