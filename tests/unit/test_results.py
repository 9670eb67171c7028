"""A result in full to its caller; to whoever watches with its outcome first and without prose (OPS-1.1, OPS-1.3)."""

from __future__ import annotations

import pytest
from celery.utils.saferepr import saferepr
from kombu.utils.json import dumps, loads

from office_tasks.results import WatchedResult, returned
from tests.nodes.engine import ROOT

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
    assert saferepr(WatchedResult(result)) == said


def test_a_long_result_still_begins_with_all_of_its_outcomes():
    """OPS-1.1: Celery cuts what it tells of a result."""
    many = [*[{"outcome": "queued", "wake_id": "w" * 30}] * 299, {"outcome": "none"}, {"outcome": "deduped"}]
    assert saferepr(WatchedResult({"wakes": many}), 1024).startswith("none, deduped, 299 queued · {")


@pytest.mark.parametrize(
    ("found", "said"),
    [([{"key": "a b"}, 1], "[{'key': '<key, 3 bytes>'}, 1]"), (("a b",), "['<value, 3 bytes>']"),
     (None, "None"), (7, "7")],
)  # fmt: skip
def test_what_celerys_own_tasks_return(found, said):
    """OPS-1.3: of `starmap` and a chord, which are Celery tasks of ours too."""
    assert saferepr(returned(found)) == said


def test_its_caller_gets_all_of_it():
    """ADM-7.2: as it was returned, prose in an id's place too."""
    found = {"comment_id": "I think so", "wakes": []}
    assert loads(dumps({"result": WatchedResult(found)})) == {"result": found}


def test_no_sentence_repeats_what_was_given_as_it_is():
    """OPS-1.3: what stands in an id's place goes through `shown`."""
    places = [ROOT / "office_tasks" / name for name in ("admin.py", "permissions.py", "admission", "producers")]
    files = [file for place in places for file in ([place] if place.is_file() else place.glob("*.py"))]
    assert [file.name for file in files if "!r}" in file.read_text()] == []
