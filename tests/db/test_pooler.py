"""R11: behind a pooler in transaction mode, the office works, or says what is wrong; it is never quietly wrong."""

from __future__ import annotations

import pytest
from sqlalchemy import event, make_url, text
from sqlalchemy.exc import DBAPIError

from db import migrate
from db.engine import autocommit
from db.errors import DbError, sqlstate
from office_tasks import retries
from office_tasks.producers import assignments, creation
from tests.databases import plain
from tests.db.pooler import Pooler
from tests.support import Board, after

CALLS = 40


@pytest.fixture
def behind(database_url, make_test_engine):
    """Return a function that makes an engine behind a pooler."""
    url = make_url(database_url)
    poolers = []

    def connect(*, passes_options=True, prepares=True, **options):
        poolers.append(Pooler(url.host, url.port, passes_options=passes_options).__enter__())
        engine = make_test_engine(url=plain(url.set(host="127.0.0.1", port=poolers[-1].port)), **options)
        if not prepares:
            event.listen(engine, "connect", lambda driver, _: setattr(driver, "prepare_threshold", None))
        return engine

    yield connect
    for pooler in poolers:
        pooler.__exit__()


def test_it_is_a_pooler_in_transaction_mode(behind):
    """R11: one connection meets several backends, and one transaction meets one."""
    engine = behind(prepares=False, pool_size=1)
    pid = text("SELECT pg_backend_pid()")
    with autocommit(engine) as connection:
        assert len({connection.execute(pid).scalar_one() for _ in range(10)}) == Pooler.BACKENDS
    with engine.begin() as connection:
        assert len({connection.execute(pid).scalar_one() for _ in range(10)}) == 1


def test_admission_needs_no_session(board, behind):
    """R11, ADM-2.5: without prepared statements all of admission works, each statement on another backend."""
    asked = Board(behind(prepares=False, pool_size=1))

    outcomes = [asked.ask(after(minutes=n), key=f"k{n % 30}").outcome for n in range(CALLS)]

    assert outcomes == ["queued"] * 30 + ["deduped"] * 10
    assert board.count("runs") == 30


def test_mutations_and_their_locks_need_no_session(board, behind):
    """R11, PRO-2.1: row locks are held by the transaction, to its commit."""
    engine = behind(prepares=False, pool_size=1)
    creation.create_task(engine, "m0", "acme", "a task", task_id="T1", step_id="start")

    generations = [assignments.assign_task(engine, f"m{n}", "T1", "ana")["generation"] for n in range(1, 11)]

    assert generations == list(range(1, 11))


def test_migrations_lock_by_transaction(board, behind):
    """R11: the lock that lets one migration run at a time is the transaction's, so no pooled session keeps it."""
    engine = behind(prepares=False, pool_size=1)
    migrate.downgrade(engine)
    migrate.upgrade(engine)

    assert not migrate.pending(engine)
    assert board.rows("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'") == []


def test_prepared_statements_fail_loudly(board, behind):
    """R11: a pooler that knows nothing of prepared statements makes an error that says so, and no wrong row."""
    asked = Board(behind(pool_size=1))

    def until_it_breaks():
        for n in range(CALLS):
            asked.ask(after(minutes=n), key=f"k{n}", payload={"n": n})

    with pytest.raises(DBAPIError) as caught:
        until_it_breaks()

    assert sqlstate(caught.value) in {"26000", "42P05"}
    assert retries.kind_of(caught.value) is None, "never retried: no retry mends it"
    assert all(row["payload"] == {"n": int(row["idempotency_key"][1:])} for row in board.runs())


def test_a_pooler_that_drops_the_session_settings_is_refused(behind):
    """R11: without its time-outs a gate could wait for ever, so the first connection says what is missing."""
    engine = behind(passes_options=False)

    with pytest.raises(DbError, match="session settings"):
        engine.connect()
    with pytest.raises(DbError, match="session settings"):
        migrate.upgrade(engine)
