"""Databases as a whole: made anew for the demo."""

from __future__ import annotations

from sqlalchemy import create_engine, make_url
from sqlalchemy.pool import NullPool


def recreate(url: str, name: str) -> str:
    """Drop the database `name` of the server at `url`, connections and all, make it empty, and return its URL.

    Args:
        url: a SQLAlchemy URL of another database of that server, whose role may create databases.
        name: what it is called.
    """
    server = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    quoted = server.dialect.identifier_preparer.quote_identifier(name)
    with server.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {quoted} WITH (FORCE)")
        connection.exec_driver_sql(f"CREATE DATABASE {quoted} TEMPLATE template0")
    return make_url(url).set(database=name).render_as_string(hide_password=False)
