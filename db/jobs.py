"""What each recovery job did last (REC-3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection, text

from db.statement import as_json

# What each did, by its name.
LATEST: Final = "SELECT job, succeeded_at, result FROM recovery_jobs ORDER BY job LIMIT 100"

# Of two ticks at once the one that ended later stays, whichever of them writes last.
_SUCCEEDED: Final = text("""
    INSERT INTO recovery_jobs AS job (job, succeeded_at, result)
    VALUES (:job, office_now(), CAST(:result AS jsonb))
    ON CONFLICT (job) DO UPDATE SET succeeded_at = EXCLUDED.succeeded_at, result = EXCLUDED.result
    WHERE job.succeeded_at <= EXCLUDED.succeeded_at""")


def succeeded(connection: Connection, job: str, result: Mapping[str, Any]) -> None:
    """Record that the job of that name has just succeeded, and what it did."""
    connection.execute(_SUCCEEDED, {"job": job, "result": as_json(result)})
