"""What the role of a connection may do, for whoever examines an installation (OPS-4)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import psycopg
from sqlalchemy import URL, Connection, text

from db.models import Base

# A database that every server has.
_ANY_SERVERS: Final = "postgres"

_READ: Final = text("""
    SELECT current_user AS name, current_schema() AS schema,
           (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
               OR has_schema_privilege(current_schema(), 'CREATE')
               OR EXISTS (SELECT FROM pg_class WHERE oid = ANY(CAST(:tables AS regclass[]))
                          AND pg_has_role(relowner, 'USAGE')) AS may_change_schema,
           ARRAY(SELECT name FROM unnest(CAST(:tables AS text[])) name
                 WHERE NOT (has_table_privilege(name, 'SELECT') AND has_table_privilege(name, 'INSERT')
                            AND has_table_privilege(name, 'UPDATE') AND has_table_privilege(name, 'DELETE'))
                 ORDER BY name) AS missing,
           coalesce(has_table_privilege(to_regclass('alembic_version'), 'SELECT'), true) AS may_read_versions""")
_TABLES: Final = text("SELECT name FROM unnest(CAST(:tables AS text[])) name WHERE to_regclass(name) IS NOT NULL")
_SUCCEEDED: Final = text("SELECT job, succeeded_at FROM recovery_jobs")


class Role(NamedTuple):
    """A role: what it is called, whether it may change the schema, and which tables it may not read and write."""

    name: str
    schema: str
    may_change_schema: bool
    missing: Sequence[str]
    may_read_versions: bool


def read(connection: Connection) -> Role:
    """Return what the connection's role may do with the office's tables, as far as they are there."""
    there = connection.execute(_TABLES, {"tables": sorted(Base.metadata.tables)}).scalars().all()
    return Role(*connection.execute(_READ, {"tables": list(there)}).one())


def may_log_in(url: URL) -> bool:
    """Tell whether the role and password of `url` are let in to the database that every server has."""
    try:
        psycopg.connect(
            host=url.host, port=url.port, user=url.username, password=url.password,
            dbname=_ANY_SERVERS, connect_timeout=3,
        ).close()  # fmt: skip
    except psycopg.Error:
        return False
    return True


def last_successes(connection: Connection) -> Mapping[str, dt.datetime]:
    """Return when each recovery job last succeeded."""
    return {row.job: row.succeeded_at for row in connection.execute(_SUCCEEDED)}
