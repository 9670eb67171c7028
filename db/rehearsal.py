"""What tests of other people's code ask of a database that is theirs alone: virtual time, an empty office, all wakes.

Never for a database that anybody works with: its clock stands still from then on.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

from sqlalchemy import Connection, text

from db.explaining import WAKE, Rows
from db.models import Base

# A row holds on every connection, at once: those of the caller's own engine too, and those that are open already. The
# session setting still goes first.
_CLOCK: Final = """
    CREATE TABLE rehearsal_clock (instant timestamptz NOT NULL);
    INSERT INTO rehearsal_clock VALUES (clock_timestamp());
    CREATE OR REPLACE FUNCTION office_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT coalesce(nullif(current_setting('office.now', true), '')::timestamptz,
                       (SELECT instant FROM rehearsal_clock)) $$"""
_MOVE: Final = text("UPDATE rehearsal_clock SET instant = :instant")

# Deleting few rows takes a hundredth of what a TRUNCATE of every table does, and waits for no reader.
_EMPTY: Final = "; ".join(f"DELETE FROM {table.name}" for table in reversed(Base.metadata.sorted_tables))

# In the order in which they were asked for or decided last: at one virtual instant only the transaction tells.
_WAKES: Final = text(f"""
    SELECT told.*, wakes.payload FROM ({WAKE}) told JOIN wakes USING (id)
    ORDER BY told.requested_at, wakes.xmin::text::bigint, told.id""")


def stop_clock(connection: Connection) -> None:
    """Replace the database's clock by one that moves only when it is told."""
    connection.exec_driver_sql(_CLOCK)


def move_clock(connection: Connection, instant: dt.datetime) -> None:
    """Make it `instant`, for every connection to the database."""
    connection.execute(_MOVE, {"instant": instant})


def empty(connection: Connection) -> None:
    """Delete every row of the office; the caller's own tables stay as they are."""
    connection.exec_driver_sql(_EMPTY)


def wakes(connection: Connection) -> Rows:
    """Return every wake with its payload and with what holds its agent back, the earliest first."""
    return [dict(row) for row in connection.execute(_WAKES).mappings()]
