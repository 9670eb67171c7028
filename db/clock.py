"""One clock, in Postgres: a worker's own clock moves no window (ADM-2.3).

`office_now()` is the server's clock, unless the connection's setting `office.now` names another instant. Queries take
the instant as a parameter as well, so that tests and replay inject it without a round trip.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

from sqlalchemy import Connection, text

CREATE: Final = """
CREATE FUNCTION office_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT coalesce(nullif(current_setting('office.now', true), '')::timestamptz, clock_timestamp()) $$
"""
DROP: Final = "DROP FUNCTION office_now()"

# The instant that a statement writes: the one that was injected, or the office's present one.
AT: Final = "coalesce(CAST(:instant AS timestamptz), office_now())"

# Materialized: read once, so that every gate of the statement sees the same instant.
INSTANT: Final = f"clock AS MATERIALIZED (SELECT {AT} AS instant)"

_NOW = text("SELECT office_now()")


def now(connection: Connection) -> dt.datetime:
    """Return the office's present instant."""
    instant: dt.datetime = connection.execute(_NOW).scalar_one()
    return instant
