"""Gate 4: what merges into what, and what a merge writes."""

from __future__ import annotations

import datetime as dt

import pytest

from office_tasks.admission import COALESCE_WINDOW
from tests.admission.rows import store_run
from tests.support import T0, after

MICROSECOND = dt.timedelta(microseconds=1)
SOON = COALESCE_WINDOW / 5
LATER = COALESCE_WINDOW * 2
TASKLESS = [None, {}, {"task_id": None}, {"task_id": ""}, [], [{"task_id": "T1"}], "text", '{"task_id": "T1"}', 7, True]
NEVER = [{"task_id": 42}, {"task_id": 4.5}, {"task_id": True}, {"task_id": ["T1"]}, {"task_id": {"a": "T1"}}]


def test_a_comment_key_never_coalesces(acme):
    """ADM-4.1: a wake whose key begins with `task_comment:` does not merge into a row that would take it."""
    store_run(acme, T0, reason="task_comment", payload={"task_id": "T1"})
    answer = acme.ask(T0 + SOON, reason="task_comment", payload={"task_id": "T1"}, key="task_comment:c1:ana")
    assert answer.outcome == "queued"


def test_a_row_with_a_comment_key_is_never_merged_into(acme):
    """ADM-4.1: nor does anything merge into a queued row with such a key."""
    store_run(acme, T0, reason="task_comment", payload={"task_id": "T1"}, key="task_comment:c1:ana")
    assert acme.ask(T0 + SOON, reason="task_comment", payload={"task_id": "T1"}).outcome == "queued"


@pytest.mark.parametrize(
    "key", ["task_comment", "Task_comment:c1", "xtask_comment:c1", "task%comment:", "taskXcomment:"]
)
def test_only_that_very_prefix_counts(acme, key):
    """ADM-4.1: no other key is exempt, whatever it resembles, on either side of the merge."""
    assert acme.ask(key=key, payload={"task_id": "T1"}).outcome == "queued"
    assert acme.ask(T0 + SOON, payload={"task_id": "T1"}).outcome == "coalesced"
    assert acme.ask(T0 + SOON, key=key + "2", payload={"task_id": "T1"}).outcome == "coalesced"


def test_a_merge_replaces_the_payload_and_counts(acme):
    """ADM-4.2: the payload is replaced, the count grows by one, and nothing else is written."""
    first = acme.ask(key="k1", payload={"task_id": "T1", "old": 1})
    before = acme.run(first.run_id)
    answer = acme.ask(T0 + SOON, key="k2", payload={"task_id": "T1", "new": 2})
    assert (answer.outcome, answer.run_id, answer.key) == ("coalesced", first.run_id, "k2")
    assert acme.runs() == [{**before, "payload": {"task_id": "T1", "new": 2}, "coalesced_count": 2}]


def test_the_incoming_key_is_stored_on_no_run(acme):
    """ADM-4.2: the key of a merged wake is free: the same key, as a new wake, is admitted later."""
    acme.ask(key="k1", payload={"task_id": "T1"})
    acme.ask(T0 + SOON, key="k2", payload={"task_id": "T1"})
    assert [run["idempotency_key"] for run in acme.runs()] == ["k1"]
    assert acme.ask(T0 + LATER, key="k2", payload={"task_id": "T1"}).outcome == "queued"


def test_a_merge_does_not_extend_the_window(acme):
    """ADM-4.2: `requested_at` stays, so a chain of merges ends."""
    first = acme.ask()
    assert acme.ask(T0 + COALESCE_WINDOW - MICROSECOND).run_id == first.run_id
    assert acme.ask(T0 + COALESCE_WINDOW).outcome == "queued"


@pytest.mark.parametrize(
    "unlike",
    [
        {"agent": "bob"},
        {"reason": "task_mentioned"},
        {"status": "claimed"},
        {"status": "finished"},
        {"status": "failed"},
        {"retry_at": after(seconds=1)},
        {"at": T0 - COALESCE_WINDOW},
        {"payload": {"task_id": "T2"}},
    ],
    ids=lambda unlike: "-".join(f"{name}" for name in unlike),
)
def test_only_a_like_waiting_recent_row_is_merged_into(acme, unlike):
    """ADM-4.2: the same agent, reason and scope, queued, not waiting for a retry, within the window."""
    run = {"at": T0 - SOON, "payload": {"task_id": "T1"}, **unlike}
    store_run(acme, run.pop("at"), **run)
    assert acme.ask(payload={"task_id": "T1"}).outcome == "queued"


def test_the_most_recently_requested_row_is_merged_into(acme):
    """ADM-4.2: of several the newest; of two at one instant the one with the higher id."""
    store_run(acme, T0 - SOON * 2)
    newest = store_run(acme, T0 - SOON)
    store_run(acme, T0 - SOON * 3)
    assert acme.ask().run_id == newest


@pytest.mark.parametrize("incoming", TASKLESS, ids=repr)
def test_taskless_wakes_merge_with_taskless_rows_only(acme, incoming):
    """ADM-4.3: absent, null, "" and a payload that is no object all mean no task."""
    store_run(acme, T0, payload={"task_id": "T1"})
    store_run(acme, T0, payload={"task_id": 42})
    assert acme.ask(payload=incoming).outcome == "queued"
    for taskless in TASKLESS:
        assert acme.ask(T0 + SOON, payload=taskless).outcome == "coalesced"
    assert acme.count("runs") == 3


def test_a_task_merges_with_that_same_json_string_only(acme):
    """ADM-4.3: a stored number 42 is not "42"."""
    for stored in ({"task_id": 42}, {"task_id": "42 "}, {"task_id": "042"}, {}, {"task_id": ["42"]}):
        store_run(acme, T0, payload=stored)
    assert acme.ask(T0 + SOON, payload={"task_id": "42"}).outcome == "queued"
    assert acme.ask(T0 + SOON, payload={"task_id": "42"}).outcome == "coalesced"


@pytest.mark.parametrize("incoming", NEVER, ids=repr)
def test_a_task_id_that_is_no_string_never_merges(acme, incoming):
    """ADM-4.3: not even with its own like."""
    assert acme.ask(payload=incoming).outcome == "queued"
    assert acme.ask(T0 + SOON, payload=incoming).outcome == "queued"
    assert acme.ask(T0 + SOON, payload={}).outcome == "queued"


@pytest.mark.parametrize("reason", ["task_assigned", "task_mentioned", "of_our_own"])
def test_wakes_of_different_tasks_never_merge(acme, reason):
    """C03: T1 then T2 are two rows; T1 twice is one, with the latest payload and count 2; taskless ones are a third."""
    acme.ask(reason=reason, payload={"task_id": "T1", "n": 1})
    acme.ask(reason=reason, payload={"task_id": "T2"})
    assert acme.count("runs") == 2
    merged = acme.ask(T0 + SOON, reason=reason, payload={"task_id": "T1", "n": 2})
    assert acme.run(merged.run_id)["payload"] == {"task_id": "T1", "n": 2}
    assert acme.run(merged.run_id)["coalesced_count"] == 2
    for payload in ({}, {"task_id": None}, {"task_id": ""}):
        acme.ask(T0 + SOON, reason=reason, payload=payload)
    assert acme.count("runs") == 3
    acme.ask(T0 + SOON, reason=reason, agent="bob", payload={"task_id": "T1"})
    acme.ask(T0 + SOON, reason=reason + "_too", payload={"task_id": "T1"})
    assert acme.count("runs") == 5


def test_the_key_that_the_merge_swallowed(acme):
    """C04, ADM-4.2: redelivered, the merged wake answers as before; asked anew, it is admitted."""
    acme.ask(key="K1", payload={"task_id": "T1"})
    merged = acme.ask(after(seconds=1), key="K2", payload={"task_id": "T1"}, wake_id="message-2")
    acme.set_status(merged.run_id, "claimed")
    redelivered = acme.ask(after(seconds=10), key="K2", payload={"task_id": "T1"}, wake_id="message-2")
    assert redelivered == merged
    assert merged.outcome == "coalesced"
    assert acme.run(merged.run_id)["coalesced_count"] == 2
    assert acme.count("runs") == 1
    assert acme.ask(after(seconds=10), key="K2", payload={"task_id": "T1"}).outcome == "queued"
    assert acme.count("runs") == 2
