"""The state of the office for whoever operates it: from Postgres, and from the broker when that answers (OPS-1.4)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

from celery import Celery
from sqlalchemy import Connection

from db import gauges
from db import status as rows
from office_tasks import beat
from office_tasks.broker import Look, look

_OF_QUEUE: Final = ("live", "waiting_for_retry")
_OF_OWED: Final = ("struggling", "poisoned", "unsettled", "unsent")
_OF_PAUSES: Final = ("workspaces_paused", "paused_workspaces", "agents_paused", "paused_agents")


def status(connection: Connection, app: Celery) -> dict[str, Any]:
    """Return the state of the office as JSON, in two round trips to Postgres and one look at the broker of `app`."""
    read, gauged = rows.read(connection), gauges.read(connection)
    return {
        "at": read["at"],
        "broker": _broker(look(app)),
        "queue": {
            **{name: read[name] for name in _OF_QUEUE},
            **gauged.live,
            "oldest_queued_seconds": gauged.oldest_queued,
            "ended": gauged.ended,
        },
        "claims": {"stale": read["stale"], "stale_claims": read["stale_claims"]},
        "owed": {
            "wakes": gauged.owed,
            "held_by_pauses": read["owed_by_pauses"],
            "oldest_seconds": gauged.oldest_owed,
            **{name: read[name] for name in _OF_OWED},
        },
        "jobs": _jobs(read, app),
        "last_hour": _last_hour(read),
        "paused": {name: read[name] for name in _OF_PAUSES},
    }


def _broker(seen: Look) -> dict[str, Any]:
    return {"url": seen.url, "error": seen.error, "waiting": seen.waiting, "workers": seen.workers}


def _jobs(read: Mapping[str, Any], app: Celery) -> list[dict[str, Any]]:
    """Return every scheduled job, whether it ever succeeded or not."""
    succeeded = {row["job"]: row for row in read["jobs"]}
    return [_job(job, period, succeeded.get(job), read["at"]) for job, period in sorted(beat.periods(app).items())]


def _job(job: str, period: dt.timedelta, row: Mapping[str, Any] | None, now: dt.datetime) -> dict[str, Any]:
    every = period.total_seconds()
    if row is None:
        return {"job": job, "every_seconds": every, "succeeded_at": None, "age_seconds": None, "late": True,
                "result": None}  # fmt: skip
    age = now - dt.datetime.fromisoformat(row["succeeded_at"])
    return {
        "job": job,
        "every_seconds": every,
        "succeeded_at": row["succeeded_at"],
        "age_seconds": max(0.0, age.total_seconds()),
        "late": beat.is_late(age, period),
        "result": row["result"],
    }


def _last_hour(read: Mapping[str, Any]) -> dict[str, Any]:
    counted = sum(row["wakes"] for row in read["decided"])
    return {"decided": read["decided"], "at_least": counted >= rows.COUNTED, "sessions_kept": read["kept"]}
