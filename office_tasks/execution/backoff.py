"""When a failed attempt is tried again, and when no more (REC-2.7)."""

from __future__ import annotations

import datetime as dt
import random
from typing import Final

from db.endings import Ending

# After the first attempt, the second, the third, the fourth; after the fifth there is none.
GAPS: Final = tuple(dt.timedelta(minutes=minutes) for minutes in (2, 10, 30, 120))
JITTER: Final = 0.25


def failed(attempt: int, error: str, retry_at: dt.datetime | None = None, gap: dt.timedelta | None = None) -> Ending:
    """Return what becomes of a run whose attempt failed.

    Args:
        attempt: which one it was, from 1.
        error: a sentence, kept on the run.
        retry_at: when the handler wants the next one.
        gap: how long to wait instead of the next gap, give or take a quarter.
    """
    if attempt > len(GAPS):
        return Ending("fail", error=error)
    if retry_at is not None:
        return Ending("retry", error=error, retry_at=retry_at)
    if gap is not None:
        return Ending("retry", error=error, gap=gap)
    spread = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - jitter is no secret
    return Ending("retry", error=error, gap=GAPS[attempt - 1] * spread)
