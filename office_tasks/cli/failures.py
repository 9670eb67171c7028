"""What a command says when it cannot do its work: one sentence, without a trace."""

from __future__ import annotations

from typing import Final

from sqlalchemy.exc import DBAPIError

from db.errors import brief, driver_error, is_connection_lost, sqlstate
from office_tasks.errors import OfficeError
from office_tasks.urls import place

EMBEDDED: Final = ("psutil",)
NO_SUCH_TABLE: Final = ("42P01", "42703", "42883")


def sentence(error: Exception) -> str | None:
    """Return what to tell the person, or None for a defect of ours, which deserves its trace."""
    if isinstance(error, OfficeError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name in EMBEDDED:
        return f"this needs {error.name}, which comes with `pip install 'office-tasks[embedded]'`"
    if is_connection_lost(error):
        return f"no connection to the database {_where()}: start it, or correct OFFICE_DATABASE_URL ({_reason(error)})"
    if sqlstate(error) in NO_SUCH_TABLE:
        return f"the schema is not this version's: run `office migrate` ({brief(error)})"
    return f"the database refused: {brief(error)}" if isinstance(error, DBAPIError) else None


def _reason(error: Exception) -> str:
    """Return what libpq said of the connection: the server, the database, the role, never the password."""
    said = str(driver_error(error) or brief(error))
    return said.partition("\n")[0]


def _where() -> str:
    """Return host, port and database, never a password."""
    from office_tasks.cli.context import office

    return place(office().engine.url)
