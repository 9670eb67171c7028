"""The real history: two years of a support desk, 31,326 events of 7,554 incidents."""

from __future__ import annotations

import pytest

from tests.replay.conftest import NO_REAL, REAL, assert_reconciles

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(not REAL.exists(), reason=NO_REAL),
]


def test_the_real_history_reconciles_and_is_not_applied_twice(play, engine):
    first = play(REAL)
    assert (first["events"], first["created"], first["assigned"], first["unassigned"]) == (31_326, 7_554, 23_755, 17)
    assert_reconciles(first, engine)
    again = play(REAL)
    assert again["already_applied"] == again["events"] == 31_326
    assert_reconciles(first, engine)
