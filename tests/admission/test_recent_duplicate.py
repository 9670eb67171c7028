"""Gate 3: a key is deduplicated for a while, and the index remembers it for longer."""

from __future__ import annotations

import datetime as dt

import pytest

from office_tasks.admission import DUPLICATE_LOOKBACK
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.creation import create_task
from tests.admission.rows import store_run
from tests.admission.telling import ADMISSIONS, DEDUP, counted, listening
from tests.support import T0, after

MINUTE = dt.timedelta(minutes=1)
MICROSECOND = dt.timedelta(microseconds=1)
FAR_APART = DUPLICATE_LOOKBACK / 4


def test_a_wake_without_a_key_is_never_deduplicated(acme):
    """ADM-3.1: no key means no dedup, stored as NULL, and no uniqueness applies to it."""
    first, second = acme.ask(), acme.ask(T0 + FAR_APART)
    assert (first.outcome, second.outcome) == ("queued", "queued")
    assert [run["idempotency_key"] for run in acme.runs()] == [None, None]
    assert [wake["key"] for wake in acme.wakes()] == [None, None]


@pytest.mark.parametrize("status", ["queued", "claimed", "finished", "failed"])
def test_a_recent_row_with_the_key_decides_whatever_its_status(acme, status):
    """ADM-3.2: a row with that key within the lookback is a duplicate's, in every status."""
    run_id = store_run(acme, T0 - FAR_APART, key="k", agent="bob", reason="other", status=status)
    answer = acme.ask(key="k")
    assert (answer.outcome, answer.gate, answer.run_id) == ("deduped", "recent_duplicate", run_id)
    assert acme.count("runs") == 1
    assert acme.run(run_id)["coalesced_count"] == 1


@pytest.mark.parametrize(
    ("age", "gate"),
    [
        (DUPLICATE_LOOKBACK - MICROSECOND, "recent_duplicate"),
        (DUPLICATE_LOOKBACK, "insert"),
        (DUPLICATE_LOOKBACK + MICROSECOND, "insert"),
    ],
)
def test_the_lookback_is_half_open(acme, age, gate):
    """ADM-3.2: a row exactly 24 h old does not decide; the index does."""
    store_run(acme, T0 - age, key="k", status="finished")
    answer = acme.ask(key="k")
    assert (answer.outcome, answer.gate) == ("deduped", gate)


def test_keys_are_compared_as_they_are(acme):
    """ADM-3.2: another key, of the same agent, task and reason, is another occurrence."""
    acme.ask(key="k", payload={"task_id": "T1"})
    assert acme.ask(T0 + FAR_APART, key="K", payload={"task_id": "T1"}).outcome == "queued"


def test_a_windowed_duplicate_is_counted_and_logged(acme):
    """ADM-3.3: counted `windowed`, logged at info with key and reason."""
    acme.ask(key="k")
    with listening() as told:
        acme.ask(after(minutes=1), key="k")
    assert told.moved == {
        counted(ADMISSIONS, reason="task_assigned", outcome="deduped"): 1,
        counted(DEDUP, reason="task_assigned", kind="windowed", queue="runs"): 1,
    }
    assert told.logged == [
        {"event": "run_deduplicated", "log_level": "info", "key": "k", "reason": "task_assigned", "kind": "windowed"}
    ]


def test_a_wake_that_was_not_admitted_leaves_its_key_free(acme):
    """ADM-3.2: only rows in `runs` decide; the key of a refused wake is not spent."""
    acme.execute("UPDATE agents SET status = 'stopped' WHERE id = 'ana'")
    assert acme.ask(key="k").refusal == "agent_not_wakeable"
    acme.execute("UPDATE agents SET status = 'active' WHERE id = 'ana'")
    assert acme.ask(after(seconds=1), key="k").outcome == "queued"


def test_the_unique_key_outlives_the_window(acme):
    """C01, ADM-6.1: a late redelivery is durable, one warning, no row; the next assignment is admitted (PRO-2.5)."""
    create_task(acme.engine, "m1", "acme", "long", task_id="T1", step_id="start", assignee_id="ana", instant=T0)
    [run] = acme.runs()
    acme.set_status(run["id"], "finished")
    late = T0 + DUPLICATE_LOOKBACK + MINUTE
    with listening() as told:
        answer = acme.ask(late, key=run["idempotency_key"], payload={"task_id": "T1"})
    assert (answer.outcome, answer.gate, answer.run_id) == ("deduped", "insert", run["id"])
    assert told.moved[counted(DEDUP, reason="task_assigned", kind="durable", queue="runs")] == 1
    assert [entry["log_level"] for entry in told.logged] == ["warning"]
    assert acme.count("runs") == 1

    again = assign_task(acme.engine, "m2", "T1", "ana", instant=late)
    assert (again["generation"], again["wakes"][0]["outcome"]) == (2, "queued")
    assert acme.count("runs") == 2


def test_just_inside_the_window_the_same_key_is_windowed(acme):
    """C01: the control, one minute before the window ends."""
    store_run(acme, T0 - DUPLICATE_LOOKBACK + MINUTE, key="task_assigned:T1:ana:1", status="finished")
    with listening() as told:
        answer = acme.ask(key="task_assigned:T1:ana:1")
    assert answer.outcome == "deduped"
    assert told.moved[counted(DEDUP, reason="task_assigned", kind="windowed", queue="runs")] == 1
