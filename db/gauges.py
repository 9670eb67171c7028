"""What an office looks like at this moment, in one statement that is cheap however much history there is (REC-3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from sqlalchemy import Connection, text

from db.claims import AGENTS, AT_WORK
from db.pauses import HELD
from db.states import RUN_TERMINAL

_SUCCEEDED: Final = "SELECT jsonb_object_agg(job, extract(epoch FROM succeeded_at)) FROM recovery_jobs"

# As the relay takes them: the wakes of a paused workspace are owed on purpose.
_OWED: Final = f"""
    SELECT extract(epoch FROM clock.instant - requested_at) FROM clock, wakes
    WHERE state = 'owed' AND NOT {HELD} ORDER BY requested_at, id LIMIT 1"""

# Each agent's line is looked at from its head, as a claim does: the first run that is due, and the first that never
# failed, which waits behind a retry that has only just come due. A retried run keeps the instant of its request, and
# waits since its retry was due. Whose agent or workspace is paused is held on purpose; a replay's is never claimed.
_LINE: Final = """
    SELECT requested_at, scheduled_retry_at FROM runs WHERE agent_profile_id = agents.id AND status = 'queued'"""
_QUEUED: Final = f"""
    SELECT extract(epoch FROM max(clock.instant - greatest(head.requested_at, head.scheduled_retry_at)))
    FROM clock CROSS JOIN {AGENTS}
    CROSS JOIN LATERAL (
        ({_LINE} AND coalesce(scheduled_retry_at <= clock.instant, true) ORDER BY requested_at, id LIMIT 1)
        UNION ALL
        ({_LINE} AND scheduled_retry_at IS NULL ORDER BY requested_at, id LIMIT 1)) AS head
    WHERE {AT_WORK}"""

# What the last ANALYZE saw: counting millions of ended runs would take seconds, at every scrape (decision 12).
_ENDED: Final = """
    SELECT jsonb_object_agg(seen.status, round(seen.share * pg_class.reltuples))
    FROM pg_class JOIN pg_namespace ON pg_namespace.oid = pg_class.relnamespace
    JOIN pg_stats ON schemaname = nspname AND tablename = relname AND attname = 'status'
    CROSS JOIN LATERAL unnest(CAST(CAST(most_common_vals AS text) AS text[]), most_common_freqs) AS seen (status, share)
    WHERE pg_class.oid = CAST('runs' AS regclass) AND pg_class.reltuples >= 0"""

_READ: Final = text(f"""
    WITH clock AS MATERIALIZED (SELECT office_now() AS instant)
    SELECT ({_SUCCEEDED}) AS succeeded, ({_OWED}) AS oldest_owed,
           (SELECT count(*) FROM wakes WHERE state = 'owed') AS owed, ({_QUEUED}) AS oldest_queued,
           (SELECT count(*) FROM runs WHERE status = 'queued') AS queued,
           (SELECT count(*) FROM runs WHERE status = 'claimed') AS claimed, ({_ENDED}) AS ended""")


class Gauges(NamedTuple):
    """One reading."""

    succeeded: Mapping[str, float]  # by job: the Unix time of its last success
    oldest_owed: float  # seconds since it was requested; 0 when none is owed
    owed: int  # wakes, those that a paused workspace owes on purpose too
    oldest_queued: float  # seconds since it was due; 0 when none waits
    live: Mapping[str, int]  # runs that are queued or claimed: counted
    ended: Mapping[str, int]  # runs that ended: as of the last ANALYZE; empty when there was none


def read(connection: Connection) -> Gauges:
    """Take one reading, in one round trip."""
    row = connection.execute(_READ).one()
    ended = {status: int((row.ended or {}).get(status, 0)) for status in RUN_TERMINAL}
    return Gauges(
        {job: float(at) for job, at in (row.succeeded or {}).items()},
        max(0.0, float(row.oldest_owed or 0)),
        row.owed,
        max(0.0, float(row.oldest_queued or 0)),
        {"queued": row.queued, "claimed": row.claimed},
        ended if row.ended is not None else {},
    )
