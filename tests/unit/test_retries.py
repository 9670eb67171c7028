"""What is tried again, how often, and after how long."""

from __future__ import annotations

import psycopg
import pytest
from celery.exceptions import SoftTimeLimitExceeded
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from office_tasks import errors, retries


def said(sqlstate, base=psycopg.OperationalError):
    kind = psycopg.errors.lookup(sqlstate) if sqlstate else base
    return DBAPIError("statement", None, kind("said so"))


@given(st.integers(0, 10_000), st.integers(6, 43_200))
def test_gaps_double_and_stay_under_half_the_visibility_timeout(tried, visibility):
    """ADM-7.4: jittered between half and whole, at most 60 s and under half the visibility time-out."""
    gap = retries.gap(tried, visibility)
    longest = min(60, visibility / 2 - 1, 0.25 * 2 ** min(tried, 10))
    assert longest / 2 <= gap <= longest
    assert gap < visibility / 2


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        *[(said(state), retries.CONNECTION_LOST) for state in ("08000", "08003", "08006", "57P01", "57P02", "57P03")],
        (said("53300"), retries.CONNECTION_LOST),
        (said(None), retries.CONNECTION_LOST),
        (said(None, psycopg.InterfaceError), retries.CONNECTION_LOST),
        (PoolTimeout(), retries.CONNECTION_LOST),
        (said("40001"), retries.CONFLICT),
        (said("40P01"), retries.CONFLICT),
        (said("55P03"), retries.STALLED),
        (SoftTimeLimitExceeded(), retries.STALLED),
        (errors.PauseGateUnavailable("x"), retries.PAUSE_GATE),
        *[(said(state), None) for state in ("57014", "42501", "23505", "23514", "22P02", "53100", "57000")],
        *[(kind("x"), None) for kind in (errors.AgentNotFound, errors.AgentNotWakeable, errors.WorkspacePaused)],
        *[(kind("x"), None) for kind in (errors.InvalidInput, errors.NotFound, errors.Forbidden, errors.Poisoned)],
        (RuntimeError("x"), None),
    ],
)
def test_what_passes_is_told_by_sqlstate(error, kind):
    """ADM-7.4, C08: lost connections, conflicts, stalls and an unreadable pause; refusals and invalid input never."""
    assert retries.kind_of(error) is kind


@pytest.mark.parametrize(("kind", "limit"), [(retries.CONFLICT, 10), (retries.STALLED, 10), (retries.PAUSE_GATE, 5)])
def test_each_kind_has_a_limit_of_its_own(kind, limit):
    """ADM-7.4: a conflict or a stall 10 times, an unreadable pause 5; other kinds' retries do not count against it."""
    assert retries.left(kind, {kind.name: limit - 1, "connection_lost": 99})
    assert not retries.left(kind, {kind.name: limit})


def test_a_lost_connection_has_no_limit():
    """ADM-7.4: without limit."""
    assert retries.left(retries.CONNECTION_LOST, {"connection_lost": 10_000})
