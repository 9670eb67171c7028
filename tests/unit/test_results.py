"""A result in full to its caller; to whoever watches with its outcome first and without prose (OPS-1.1, OPS-1.3)."""

from __future__ import annotations

import pytest
from celery.utils.saferepr import saferepr
from kombu.utils.json import dumps, loads

from office_tasks.results import Result

WAKES = {"task_id": "T1", "wakes": [{"outcome": "queued"}, {"outcome": "deduped"}, {"wake_id": "w"}]}


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"outcome": "rate_limited", "observed": 5}, "rate_limited · {'outcome': 'rate_limited', 'observed': 5}"),
        (WAKES, f"queued, deduped · {WAKES}"),
        ({"wakes": []}, "{'wakes': []}"),
        ({"run_id": None, "cancelled": False}, "{'run_id': None, 'cancelled': False}"),
        ({"comment_id": "I think so"}, "{'comment_id': '<comment_id, 10 bytes>'}"),
        ({"key": "é\n"}, "{'key': '<key, 3 bytes>'}"),
        ({"runs": [{"key": "a b"}, "c d"]}, "{'runs': [{'key': '<key, 3 bytes>'}, '<runs, 3 bytes>']}"),
        ({"session": {"error": "57014: canceling"}}, "{'session': {'error': '57014: canceling'}}"),
    ],
)
def test_what_a_watcher_sees(result, said):
    """OPS-1.1, OPS-1.3: as Celery writes it into the event that Flower reads."""
    assert saferepr(Result(result)) == said


def test_a_long_result_still_begins_with_its_outcomes():
    """OPS-1.1: Celery cuts what it tells of a result."""
    many = Result({"wakes": [{"outcome": "queued", "wake_id": "w" * 30}] * 40})
    assert saferepr(many, 1024).startswith("queued, queued, ")


def test_its_caller_gets_all_of_it():
    """ADM-7.2: as it was returned, prose in an id's place too."""
    found = {"comment_id": "I think so", "wakes": []}
    assert loads(dumps({"result": Result(found)})) == {"result": found}
