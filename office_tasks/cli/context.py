"""What a command works with: the process's office, its logs kept out of the way of its output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

from db.engine import autocommit
from office_tasks.celery_app import OfficeApp, app
from office_tasks.logs import configure_logs
from office_tasks.office import Office

QUIET = "WARNING"


def office() -> Office:
    """Return the office that the environment describes.

    Raises:
        SettingsError: a variable has a value that cannot work.
    """
    return app.office


def application() -> OfficeApp:
    """Return the Celery application, to look at its broker."""
    return app


def quiet() -> None:
    """Keep logs out of the way of a command that works without settings too."""
    configure_logs(QUIET)


def engine() -> Engine:
    """Return the engine, with logs as a person at a terminal wants them unless OFFICE_LOG_LEVEL says otherwise."""
    settings = office().settings
    configure_logs(settings.log_level if "log_level" in settings.model_fields_set else QUIET)
    return office().engine


@contextmanager
def connection() -> Iterator[Connection]:
    """Yield a connection to read with."""
    with autocommit(engine()) as opened:
        yield opened
