"""The database and the worker of a replay: those that the settings name, or throwaway ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from celery import Celery
from sqlalchemy import Engine

from db import migrate
from db.engine import make_engine
from office_tasks.replay.errors import ReplayError
from office_tasks.replay.worker import client, own_worker
from office_tasks.settings import Settings, load

# The replay's lock, its bulk questions, and one event at a time.
CONNECTIONS = 3


@contextmanager
def database(data: Path | None) -> Iterator[Engine]:
    """Yield an engine on the database of OFFICE_DATABASE_URL, or on a throwaway server's, which `data` keeps.

    Raises:
        ReplayError: both are named.
        DevStackError: the throwaway server cannot be started.
    """
    settings = load()
    if "database_url" in settings.model_fields_set:
        if data is not None:
            raise ReplayError("--data keeps a throwaway server, and OFFICE_DATABASE_URL names another: use one of them")
        with _engine(settings.database_url.get_secret_value()) as engine:
            yield engine
        return
    from office_tasks.devstack import Postgres  # noqa: PLC0415 - an extra, needed only here

    # A kept one must survive a crash of the machine, though it may lose its last moments: a second run applies them.
    place, kept = (data and data / "postgres"), data is not None
    with Postgres(place, durable=kept, settings={"synchronous_commit": "off"}) as server, _engine(server.url) as engine:
        migrate.upgrade(engine)
        yield engine


@contextmanager
def _engine(url: str) -> Iterator[Engine]:
    engine = make_engine(url, pool_size=CONNECTIONS, application_name="office-replay")
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def worker(engine: Engine, log_level: str) -> Iterator[Celery]:
    """Yield an app that sends to the worker of OFFICE_BROKER_URL, or to one that runs only for this replay.

    Raises:
        ReplayError: the worker does not come up, or runs on we know not which database.
        DevStackError: Redis cannot be started.
    """
    settings = load()
    if "broker_url" not in settings.model_fields_set:
        with own_worker(engine.url.render_as_string(hide_password=False), log_level) as app:
            yield app
        return
    app = _named(settings)
    try:
        yield app
    finally:
        app.close()


def _named(settings: Settings) -> Celery:
    if "database_url" not in settings.model_fields_set:
        raise ReplayError("OFFICE_BROKER_URL names a broker: name its worker's database too, in OFFICE_DATABASE_URL")
    return client(settings)
