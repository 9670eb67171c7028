"""Whether beat is seen: each recovery job's last success, held against how often the schedule has it run (C37)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Final

from celery import Celery

# Ticks that may be missed before a job counts as late: one may be lost, one may be slow.
MISSED: Final = 3
# A job is queued, and recorded when it is done.
_ALLOWED: Final = dt.timedelta(seconds=15)


def periods(app: Celery) -> Mapping[str, dt.timedelta]:
    """Return by job how often the schedule of `app` has it run."""
    app.loader.import_default_modules()
    return {entry["task"]: dt.timedelta(seconds=entry["schedule"]) for entry in app.conf.beat_schedule.values()}


def is_late(age: dt.timedelta, period: dt.timedelta) -> bool:
    """Tell whether a job that last succeeded that long ago has missed its ticks."""
    return age > MISSED * period + _ALLOWED
