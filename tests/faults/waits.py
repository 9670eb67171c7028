"""Who waits for whom, as Postgres itself shows it, and what is done about it."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from sqlalchemy import Engine, text

from db.engine import autocommit
from tests.nodes.waiting import until

_BLOCKED = text("""
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND wait_event_type = 'Lock' AND query LIKE :like""")
_UNGRANTED = text("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = ANY(:pids)")
# A busy machine may take longer to start whoever is to wait than the server waits for an idle transaction.
PATIENTLY = text("SET LOCAL idle_in_transaction_session_timeout = 0")
_TERMINATE = text("SELECT pg_terminate_backend(:pid, 5000)")


def blocked(engine: Engine, like: str = "%") -> list[int]:
    """Return the backends of this database that wait for a lock in a statement like `like`."""
    with autocommit(engine) as connection:
        return list(connection.execute(_BLOCKED, {"like": like}).scalars())


def until_blocked(engine: Engine, count: int = 1, like: str = "%") -> list[int]:
    """Wait until `count` backends wait for a lock, in pg_stat_activity and in pg_locks, and return them."""

    def seen() -> list[int]:
        pids = blocked(engine, like)
        with autocommit(engine) as connection:
            ungranted = connection.execute(_UNGRANTED, {"pids": pids}).scalar_one()
        return pids if len(pids) >= count and ungranted >= count else []

    return until(seen, what=f"{count} backends waiting for a lock")


def terminate(engine: Engine, pid: int) -> None:
    """End a backend and wait until it is gone."""
    with autocommit(engine) as connection:
        connection.execute(_TERMINATE, {"pid": pid})


def terminate_whoever_waits(engine: Engine, call: Future, like: str = "%") -> int:
    """End every backend that comes to wait for a lock, until `call` is done; return how many there were."""
    ended = 0
    while not call.done():
        until(lambda: call.done() or blocked(engine, like), what="a lock wait, or the end")
        for pid in blocked(engine, like):
            terminate(engine, pid)
            ended += 1
    return ended


@contextmanager
def in_background():
    """Yield a function that starts a call in a thread of its own and returns its future."""
    with ThreadPoolExecutor(max_workers=64) as threads:
        yield threads.submit


@contextmanager
def holding(engine: Engine, statement: str, **params):
    """Run `statement` in a transaction that stays open; the block ends it by `held.commit()` or `held.rollback()`."""
    with engine.connect() as held:
        held.execute(PATIENTLY)
        held.execute(text(statement), params)
        yield held
        held.rollback()
