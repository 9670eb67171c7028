"""Databases for tests, on an embedded server or a named one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Self

from sqlalchemy import URL, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from db.errors import brief
from office_tasks.errors import OfficeError

VARIABLE: Final = "OFFICE_TEST_DATABASE_URL"


class NoTestServer(OfficeError):
    """There is no PostgreSQL to test with; the sentence says what to do."""


@contextmanager
def server(named: str | None, *, max_connections: int = 100) -> Iterator[URL]:
    """Yield the URL of the server that is named, or of an embedded one that ends with the block.

    Raises:
        NoTestServer: what is named is no URL; or none is, and the embedded one is not installed or does not start.
    """
    if named:
        yield _named(named)
        return
    try:
        from office_tasks.devstack import DevStackError, Postgres  # noqa: PLC0415 - an extra, not always installed
    except ImportError as error:
        raise NoTestServer(
            _advice(f"the embedded PostgreSQL needs {error.name}: install office-tasks[testing]")
        ) from None
    postgres = Postgres(durable=False, settings={"max_connections": str(max_connections)})
    try:
        postgres.start()
    except DevStackError as error:
        raise NoTestServer(_advice(str(error))) from None
    try:
        yield make_url(postgres.url)
    finally:
        postgres.stop()


class Databases:
    """Databases made for one test process, each dropped at the end of the block at the latest."""

    def __init__(self, server_url: URL) -> None:
        # Whatever driver the server was named with: ours is psycopg.
        self._url = server_url.set(drivername="postgresql+psycopg")
        self._admin = create_engine(self._url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        self._made: list[str] = []

    def __enter__(self) -> Self:
        """Make none yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Drop what was made and not dropped."""
        while self._made:
            self.drop(self._url.set(database=self._made[-1]))

    def make(self, template: URL | None = None) -> URL:
        """Make a database, empty or like the template, which nobody may be connected to.

        Raises:
            NoTestServer: the server does not answer, or lets this role make none.
        """
        name = f"office_test_{uuid.uuid4().hex[:12]}"
        try:
            self._do(f"CREATE DATABASE {name} TEMPLATE {template.database if template else 'template0'}")
        except SQLAlchemyError as error:
            raise NoTestServer(_advice(f"no database can be made on {self._url!r}: {brief(error)}")) from None
        self._made.append(name)
        return self._url.set(database=name)

    def drop(self, url: URL) -> None:
        """Drop a database that `make` made, whoever is connected to it."""
        self._made.remove(url.database or "")
        self._do(f"DROP DATABASE IF EXISTS {url.database} WITH (FORCE)")

    def _do(self, statement: str) -> None:
        with self._admin.connect() as connection:
            connection.execute(text(statement))


def plain(url: URL) -> str:
    """Return the URL as text, password included."""
    return url.render_as_string(hide_password=False)


def _named(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        raise NoTestServer(
            _advice("the server that is named has no URL: postgresql://user@host:port/database")
        ) from None


def _advice(what: str) -> str:
    return f"{what}; or name a server on which databases can be made in {VARIABLE}"
