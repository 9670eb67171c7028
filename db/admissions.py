"""What was decided lately, what is owed, and what recovery did last: for whoever looks, in bounded reads (OPS-1.1)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, text

from db.jobs import LATEST
from db.pauses import HELD

# A day of a busy office may be millions of wakes: the newest are counted, and the page says from when on.
MOST_DECIDED: Final = 100_000
MOST_OWED: Final = 10_000

_DECIDED: Final = text("""
    WITH clock AS MATERIALIZED (SELECT office_now() AS instant),
    recent AS MATERIALIZED (
        SELECT CASE WHEN reason = ANY(:reasons) THEN reason ELSE :other END AS reason,
               coalesce(refusal, outcome, state) AS outcome, refusal IS NOT NULL AS refused, decided_at
        FROM wakes
        WHERE state <> 'owed' AND decided_at > (SELECT instant FROM clock) - interval '1 day'
        ORDER BY decided_at DESC LIMIT :most)
    SELECT outcome, reason, refused, count(*) AS day, min(decided_at) AS since,
           count(*) FILTER (WHERE decided_at > (SELECT instant FROM clock) - interval '1 hour') AS hour
    FROM recent GROUP BY outcome, reason, refused ORDER BY refused, outcome, day DESC, reason""")

_OWED: Final = text(f"""
    WITH oldest AS MATERIALIZED (
        SELECT agent_profile_id, requested_at FROM wakes WHERE state = 'owed' ORDER BY requested_at, id LIMIT :most),
    held AS (
        SELECT requested_at, {HELD} AS paused FROM oldest wakes)
    SELECT office_now() AS instant, count(*) FILTER (WHERE NOT paused) AS due, count(*) FILTER (WHERE paused) AS paused,
           extract(epoch FROM office_now() - min(requested_at) FILTER (WHERE NOT paused)) AS oldest FROM held""")

_JOBS: Final = text(f"""
    SELECT job, result, greatest(0, extract(epoch FROM office_now() - succeeded_at)) AS age
    FROM ({LATEST}) latest""")


class Decided(NamedTuple):
    """How often one thing was decided."""

    outcome: str  # of a refused wake its refusal; `superseded` of one that was made moot
    reason: str
    refused: bool
    hour: int
    day: int


class Job(NamedTuple):
    """What a recovery job did when it last succeeded."""

    age: float  # seconds
    result: dict[str, Any]


class Admissions(NamedTuple):
    """One reading."""

    instant: dt.datetime
    decided: list[Decided]
    since: dt.datetime | None  # when the newest `MOST_DECIDED` do not reach back a day: the oldest of them
    due: int  # owed wakes that the relay will take; like the next, of the `MOST_OWED` oldest
    paused: int  # owed wakes that a pause holds
    oldest: float  # seconds since the oldest due wake was requested
    jobs: dict[str, Job]


def read(connection: Connection, reasons: Sequence[str], other: str) -> Admissions:
    """Take one reading, in three bounded statements.

    Args:
        connection: each statement sees its own instant.
        reasons: those that are named; all others are counted together.
        other: the name of all others.
    """
    asked = {"reasons": list(reasons), "other": other, "most": MOST_DECIDED}
    rows = connection.execute(_DECIDED, asked).all()
    decided = [Decided(row.outcome, row.reason, row.refused, row.hour, row.day) for row in rows]
    cut = sum(each.day for each in decided) >= MOST_DECIDED
    owed = connection.execute(_OWED, {"most": MOST_OWED}).one()
    jobs = {row.job: Job(float(row.age), row.result) for row in connection.execute(_JOBS)}
    since = min(row.since for row in rows) if cut else None
    return Admissions(owed.instant, decided, since, owed.due, owed.paused, float(owed.oldest or 0), jobs)
