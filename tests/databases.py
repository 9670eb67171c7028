"""The three database fixtures: a savepoint per test, a cloned database per test, one database per xdist worker."""

from __future__ import annotations

import os

import pytest
from sqlalchemy import URL

from db import migrate
from db.engine import make_engine
from office_tasks.testing.databases import Databases, plain, server


@pytest.fixture(scope="session")
def server_url():
    """The server: the one that OFFICE_DATABASE_URL names, or an embedded one of this pytest process."""
    with server(os.environ.get("OFFICE_DATABASE_URL"), max_connections=300) as url:
        yield url


@pytest.fixture(scope="session")
def make_database(server_url):
    """Return a function that makes a database, from a template or empty, and drops it at the end of the session."""
    with Databases(server_url) as databases:

        def make(template: URL | None = None) -> URL:
            return databases.make(template)

        make.drop = databases.drop
        yield make


@pytest.fixture(scope="session")
def template(make_database):
    """A migrated, empty database that nobody stays connected to."""
    url = make_database()
    engine = make_engine(plain(url))
    migrate.upgrade(engine)
    engine.dispose()
    return url


@pytest.fixture(scope="session")
def worker_engine(make_database, template):
    """An engine on the one database of this xdist worker, whose rows no test leaves behind."""
    engine = make_engine(plain(make_database(template)))
    yield engine
    engine.dispose()


@pytest.fixture
def connection(worker_engine):
    """A connection in a transaction that is undone: for what one connection can see by itself."""
    with worker_engine.connect() as connection, connection.begin() as transaction:
        yield connection
        transaction.rollback()


@pytest.fixture
def database_url(make_database, template):
    """A database of the test's own: for real commits, several connections, and faults."""
    url = make_database(template)
    yield plain(url)
    make_database.drop(url)


@pytest.fixture
def make_test_engine(database_url):
    """Return a function that makes one more engine on the test's own database: `make_test_engine(pool_size=8)`."""
    engines = []

    def make(**options):
        engines.append(make_engine(options.pop("url", database_url), **{"pool_size": 4, **options}))
        return engines[-1]

    yield make
    for engine in engines:
        engine.dispose()


@pytest.fixture
def engine(make_test_engine):
    """An engine on the test's own database."""
    return make_test_engine()
