"""The fixtures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, make_url

from db import migrate, rehearsal
from db.engine import make_engine
from office_tasks import app
from office_tasks.office import Office
from office_tasks.settings import Settings
from office_tasks.testing import messages
from office_tasks.testing.databases import VARIABLE, Databases, NoTestServer, plain, server
from office_tasks.testing.trial import TrialOffice

# For threads of the code under test; more than a pool of a worker's has.
_CONNECTIONS = 8
# No Redis: what happened is not told to anybody. As settings they would be refused: no other process could see them.
_NO_SERVERS: Final = {"broker_url": SecretStr("memory://"), "result_backend": SecretStr("cache+memory://")}


@contextmanager
def _in_a_sentence() -> Iterator[None]:
    """Fail, not skip: a test that cannot run must not look like one that passed."""
    try:
        yield
    except NoTestServer as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


@pytest.fixture(scope="session")
def office_server_url() -> Iterator[str]:
    """A server on which databases can be made: `OFFICE_TEST_DATABASE_URL`, or an embedded one. Yours to override."""
    with _in_a_sentence(), server(os.environ.get(VARIABLE)) as url:
        yield plain(url)


@pytest.fixture(scope="session")
def office_database_url(office_server_url: str) -> Iterator[str]:
    """The database of this test process, migrated, for an engine of your own; it is dropped at the end."""
    with Databases(make_url(office_server_url)) as databases:
        with _in_a_sentence():
            url = plain(databases.make())
        engine = make_engine(url)
        migrate.upgrade(engine)
        with engine.begin() as connection:
            rehearsal.stop_clock(connection)
        engine.dispose()
        yield url


@pytest.fixture(scope="session")
def _office_engine(office_database_url: str) -> Iterator[Engine]:
    engine = make_engine(office_database_url, pool_size=_CONNECTIONS, application_name="office-testing")
    yield engine
    engine.dispose()


@pytest.fixture
def office(_office_engine: Engine, office_database_url: str, monkeypatch: pytest.MonkeyPatch) -> TrialOffice:
    """An empty office at 2026-03-02 09:00 UTC, which every Celery task of `office_tasks` works on during the test."""
    messages.divert(monkeypatch)
    own = Settings(database_url=office_database_url, broker_url="redis://", result_backend=None, events_url=None)  # type: ignore[arg-type]
    monkeypatch.setitem(app.__dict__, "office", Office(own.model_copy(update=_NO_SERVERS), _office_engine))
    trial = TrialOffice(_office_engine)
    trial.begin()
    return trial
