"""What is tried again, how often, and after how long (ADM-7.4)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final, NamedTuple

from celery.exceptions import SoftTimeLimitExceeded

from db.errors import is_conflict, is_connection_lost, is_stalled
from office_tasks.errors import PauseGateUnavailable

HEADER: Final = "office_retries"
LONGEST_GAP: Final = 60.0


class Kind(NamedTuple):
    """One kind of failure that passes; `limit` None is without limit."""

    name: str
    limit: int | None


CONNECTION_LOST: Final = Kind("connection_lost", None)
CONFLICT: Final = Kind("conflict", 10)
# Somebody held a lock, or the whole of it took longer than the soft time limit: the message may well fare better later.
STALLED: Final = Kind("stalled", 10)
PAUSE_GATE: Final = Kind("pause_gate", 5)


def kind_of(error: BaseException) -> Kind | None:
    """Return the kind of failure, or None for one that is never retried."""
    if isinstance(error, PauseGateUnavailable):
        return PAUSE_GATE
    if is_conflict(error):
        return CONFLICT
    if is_stalled(error) or isinstance(error, SoftTimeLimitExceeded):
        return STALLED
    return CONNECTION_LOST if is_connection_lost(error) else None


def left(kind: Kind, counts: Mapping[str, int]) -> bool:
    """Tell whether one more retry of this kind is due."""
    return kind.limit is None or counts.get(kind.name, 0) < kind.limit


def gap(retries: int, visibility_timeout: int) -> float:
    """Return the seconds to wait: doubling, jittered, at most 60 and under half the visibility time-out.

    A longer one would be delivered twice while it waits.
    """
    longest = min(LONGEST_GAP, visibility_timeout / 2 - 1)
    return min(longest, 0.25 * 2.0 ** min(retries, 10)) * random.uniform(0.5, 1)  # noqa: S311 - jitter is no secret
