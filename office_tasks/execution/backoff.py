"""When a failed attempt is tried again, and when no more (REC-2.7)."""

from __future__ import annotations

import datetime as dt
import random
from typing import Final

from db.endings import Ending

# After the first attempt, the second, the third, the fourth; after the fifth there is none.
GAPS: Final = tuple(dt.timedelta(minutes=minutes) for minutes in (2, 10, 30, 120))
JITTER: Final = 0.25
AT_ONCE: Final = dt.timedelta(0)


def failed(attempt: int, error: str, retry_at: dt.datetime | None = None) -> Ending:
    """Return what becomes of a run whose attempt failed.

    Args:
        attempt: which one it was, from 1.
        error: a sentence, kept on the run.
        retry_at: when the handler wants the next one; None for the next gap, give or take a quarter.
    """
    if retry_at is not None:
        return _retry(attempt, error, retry_at=retry_at)
    spread = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - jitter is no secret
    return _retry(attempt, error, gap=GAPS[min(attempt, len(GAPS)) - 1] * spread)


def worker_stopped(attempt: int) -> Ending:
    """Return what becomes of a run whose worker was told to stop: nothing is wrong with it, so the next may have it."""
    return _retry(attempt, "its worker was stopped", gap=AT_ONCE)


def worker_died(attempt: int) -> Ending:
    """Return what becomes of a run whose lease ran out (REC-2.8).

    One death says little about the run, and another worker takes it up at once. A run that takes its workers with it
    must not take one after the other: from its second death on it waits like any that failed.
    """
    error = "its lease ran out: the worker died, or stood still for a minute"
    return _retry(attempt, error, gap=AT_ONCE) if attempt == 1 else failed(attempt, error)


def deaf(attempt: int) -> Ending:
    """Return what becomes of a run that was asked to stop and did not in time: it ends cancelled (REC-2.10)."""
    return failed(attempt, "it was asked to stop, and did not in time")


def _retry(attempt: int, error: str, *, gap: dt.timedelta | None = None, retry_at: dt.datetime | None = None) -> Ending:
    if attempt > len(GAPS):
        return Ending("fail", error=error)
    return Ending("retry", error=error, gap=gap, retry_at=retry_at)
