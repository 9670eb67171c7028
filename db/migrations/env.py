"""How migrations run: one at a time, in a transaction, giving way to a live table rather than blocking it."""

from __future__ import annotations

from typing import Any

from alembic import context
from sqlalchemy import Connection, text

from db.models import Base

# Any constant, so long as nobody else takes it; held until the transaction ends.
ONE_AT_A_TIME = 0x0FF1CE


def _settings(connection: Connection) -> None:
    connection.execute(text("SET LOCAL statement_timeout = 0"))
    connection.execute(text("SET LOCAL lock_timeout = 0"))
    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": ONE_AT_A_TIME})
    connection.execute(text("SET LOCAL lock_timeout = '4s'"))


def _run(connection: Connection, **options: Any) -> None:  # noqa: ANN401 - Alembic's own options
    context.configure(connection=connection, target_metadata=Base.metadata, **options)
    with context.begin_transaction():
        _settings(connection)
        context.run_migrations()


connection: Connection = context.config.attributes["connection"]
_run(connection)
connection.commit()
