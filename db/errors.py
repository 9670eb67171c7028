"""What Postgres said, by SQLSTATE and constraint name, never by message text."""

from __future__ import annotations

from typing import Final

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

SHUTDOWN: Final = frozenset({"57P01", "57P02", "57P03", "53300"})
CONFLICT: Final = frozenset({"40001", "40P01"})
LOCK_TIMEOUT: Final = "55P03"
UNIQUE_VIOLATION: Final = "23505"
DATA_EXCEPTION: Final = "22"
# The function of the server's that a RAISE of PL/pgSQL comes from, whatever SQLSTATE it chose.
RAISED: Final = "exec_stmt_raise"


class DbError(Exception):
    """Root of the errors that `db` itself raises."""


def driver_error(error: BaseException) -> psycopg.Error | None:
    """Return the driver's error inside SQLAlchemy's, or None when there is none."""
    if isinstance(error, DBAPIError) and isinstance(error.orig, psycopg.Error):
        return error.orig
    return error if isinstance(error, psycopg.Error) else None


def sqlstate(error: BaseException) -> str | None:
    """Return the five characters of SQLSTATE, or None when the server never answered."""
    driver = driver_error(error)
    return driver.sqlstate if driver else None


def is_connection_lost(error: BaseException) -> bool:
    """Tell whether the server could not be reached, went away, or is shutting down (ADM-7.4)."""
    if isinstance(error, PoolTimeout):
        return True
    driver = driver_error(error)
    if driver is None:
        return False
    if driver.sqlstate is None:
        return isinstance(driver, psycopg.OperationalError | psycopg.InterfaceError)
    return driver.sqlstate.startswith("08") or driver.sqlstate in SHUTDOWN


def uses_password(error: BaseException) -> bool:
    """Tell whether a connection that failed had given its password: it may be wrong (libpq tells no SQLSTATE)."""
    driver = driver_error(error)
    return driver is not None and driver.pgconn is not None and driver.pgconn.used_password


def needs_password(error: BaseException) -> bool:
    """Tell whether a connection failed for want of a password."""
    driver = driver_error(error)
    return driver is not None and driver.pgconn is not None and driver.pgconn.needs_password


def is_conflict(error: BaseException) -> bool:
    """Tell whether Postgres chose this statement to lose: a serialization failure or a deadlock (ADM-7.4)."""
    return sqlstate(error) in CONFLICT


def is_stalled(error: BaseException) -> bool:
    """Tell whether the statement gave up waiting for a lock that somebody held too long (C08)."""
    return sqlstate(error) == LOCK_TIMEOUT


def violates(error: BaseException, constraint: str) -> bool:
    """Tell whether `error` is a conflict on the unique index or key named `constraint`."""
    driver = driver_error(error)
    return driver is not None and driver.sqlstate == UNIQUE_VIOLATION and driver.diag.constraint_name == constraint


def brief(error: BaseException) -> str:
    """Return one line that names the fault and holds no statement and no parameter (they may hold payloads)."""
    driver = driver_error(error)
    if driver is None:
        return type(error).__name__
    if driver.sqlstate is None:
        # libpq's own words: where it tried to connect, and why it could not; never a password.
        return f"no answer: {str(driver).partition(chr(10))[0] or type(driver).__name__}"
    said = type(driver).__name__ if _may_repeat_a_value(driver) else driver.diag.message_primary
    return f"{driver.sqlstate}: {said}"


def _may_repeat_a_value(driver: psycopg.Error) -> bool:
    """Tell whether the sentence may hold what a statement worked on: a value that is no number, a trigger's words."""
    return (driver.sqlstate or "").startswith(DATA_EXCEPTION) or driver.diag.source_function == RAISED
