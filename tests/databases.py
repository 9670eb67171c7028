"""The three database fixtures: a savepoint per test, a cloned database per test, one database per xdist worker."""

from __future__ import annotations

import os
import uuid

import pytest
from sqlalchemy import URL, create_engine, make_url, text
from sqlalchemy.pool import NullPool

from db import migrate
from db.engine import make_engine
from office_tasks.devstack import Postgres


@pytest.fixture(scope="session")
def server_url():
    """The server: the one that OFFICE_DATABASE_URL names, or an embedded one of this pytest process."""
    if named := os.environ.get("OFFICE_DATABASE_URL"):
        yield make_url(named)
        return
    with Postgres(durable=False, settings={"max_connections": "300"}) as postgres:
        yield make_url(postgres.url)


@pytest.fixture(scope="session")
def make_database(server_url):
    """Return a function that makes a database, from a template or empty, and drops it at the end of the session."""
    admin = create_engine(server_url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    made = []

    def make(template: URL | None = None) -> URL:
        name = f"office_test_{uuid.uuid4().hex[:12]}"
        with admin.connect() as connection:
            connection.execute(
                text(f"CREATE DATABASE {name} TEMPLATE {template.database if template else 'template0'}")
            )
        made.append(name)
        return server_url.set(database=name)

    def drop(url: URL) -> None:
        made.remove(url.database)
        with admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE IF EXISTS {url.database} WITH (FORCE)"))

    make.drop = drop
    yield make
    while made:
        drop(server_url.set(database=made[-1]))
    admin.dispose()


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


def plain(url: URL) -> str:
    """Return the URL as text, password included."""
    return url.render_as_string(hide_password=False)
