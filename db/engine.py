"""The engine: fork-safe, bounded in every wait, and never a stale connection handed out."""

from __future__ import annotations

import os
import select
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DisconnectionError

from db.errors import DbError
from db.statement import as_json

# Postgres measures these in milliseconds.
SESSION_OPTIONS = {
    "statement_timeout": "10000",
    "lock_timeout": "3000",
    "idle_in_transaction_session_timeout": "15000",
    "default_transaction_isolation": "read\\ committed",
    "TimeZone": "UTC",
    "jit": "off",
    # A prepared statement keeps its plan, and one made while a table was known to be empty reads the whole table for
    # ever after. Every question that we ask has an index: with it, no number of rows makes an old plan wrong.
    "enable_seqscan": "off",
    # For the same reason: a table that looks small is read through a bitmap and sorted, where an index has the order.
    "enable_bitmapscan": "off",
}

# A session that has this has the others too; see `_refuse_a_session_without_settings`.
_ARRIVED = "office.settings_arrived"

_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


def make_engine(
    url: str, *, pool_size: int = 1, application_name: str = "office", session: dict[str, str] | None = None
) -> Engine:
    """Return an engine that opens nothing until it is used.

    Args:
        url: a SQLAlchemy URL, `postgresql+psycopg://…`.
        pool_size: connections kept; one per thread that works at once. None overflow.
        application_name: what `pg_stat_activity` shows.
        session: settings of each connection, over `SESSION_OPTIONS`.
    """
    settings = {**SESSION_OPTIONS, **(session or {}), _ARRIVED: "yes"}
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=5,
        pool_recycle=1800,
        hide_parameters=True,
        json_serializer=as_json,
        connect_args={"connect_timeout": 3, "application_name": application_name, "options": options},
    )
    event.listen(engine, "connect", _refuse_a_session_without_settings)
    event.listen(engine, "checkout", _refuse_a_closed_connection)
    _engines.add(engine)
    return engine


@contextmanager
def autocommit(engine: Engine) -> Iterator[Connection]:
    """Yield a READ COMMITTED connection on which every statement commits by itself (ADM-2.5)."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection


def _refuse_a_session_without_settings(dbapi_connection: Any, _record: Any) -> None:  # noqa: ANN401
    # A pooler may be told to drop them (PgBouncer: ignore_startup_parameters); then nothing would bound a wait (R11).
    dbapi_connection.autocommit = True  # one round trip instead of three
    arrived = dbapi_connection.execute("SELECT current_setting(%s, true)", (_ARRIVED,)).fetchone()
    dbapi_connection.autocommit = False
    if arrived != ("yes",):
        dbapi_connection.close()
        raise DbError(
            "the session settings (time-outs) did not reach Postgres: a pooler drops them. Connect to Postgres itself, "
            "or to a pooler in session mode that passes `options` on"
        )


def _refuse_a_closed_connection(dbapi_connection: Any, _record: Any, _proxy: Any) -> None:  # noqa: ANN401
    # An idle connection has nothing to read unless the server closed it or is telling us that it will: a look at the
    # socket finds a restarted Postgres without the round trip of a ping.
    readable, _, _ = select.select([dbapi_connection.fileno()], [], [], 0)
    if readable:
        raise DisconnectionError


def _forget_inherited_connections() -> None:
    # A child must neither use its parent's sockets nor close them (C20).
    for engine in list(_engines):
        engine.dispose(close=False)


os.register_at_fork(after_in_child=_forget_inherited_connections)
