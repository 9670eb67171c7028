"""Every producer that the code has: the key it mints, why it has none, and the actor it names."""

from __future__ import annotations

import pytest

from office_tasks import app
from office_tasks.producers.assignments import assign_task, create_task
from office_tasks.producers.bare import enqueue, queue_run, spawn_run, task_created
from tests.support import T0, after

WAKES_NOBODY = {"office.settle_mutation", "office.pause_workspace", "office.resume_workspace", "office.execute_run"}


def by_assign_task(engine, n, message):
    return assign_task(engine, message, "T0", "ana", "bob", after(minutes=n))


def by_create_task(engine, n, message):
    more = {"task_id": f"T{n}", "step_id": "start", "assignee_id": "ana", "caller_agent_id": "bob"}
    return create_task(engine, message, "acme", "title", instant=after(minutes=n), **more)


def by_task_created(engine, n, message):
    return enqueue(engine, task_created(engine, message, "T0", "ana", n), instant=after(minutes=n))


def by_spawn_run(engine, n, message):
    return enqueue(engine, spawn_run(message, f"run-{n}", "ana", "r", {}, "same"), instant=after(minutes=n))


def by_queue_run(engine, n, message):
    return enqueue(engine, queue_run(message, "ana", "r", {}, f"given-{n}"), instant=after(minutes=n))


# By producer: how it is driven through its n-th occurrence, the keys of the first two, and the actor it names.
KEYED = {
    "office.assign_task": (by_assign_task, ["task_assigned:T0:ana:1", "task_assigned:T0:ana:2"], "agent"),
    "office.create_task": (by_create_task, ["task_assigned:T1:ana:1", "task_assigned:T2:ana:1"], None),
    "office.task_created": (by_task_created, ["task_assigned:T0:ana:1", "task_assigned:T0:ana:2"], None),
    "office.spawn_run": (by_spawn_run, ["agent:run-1:same", "agent:run-2:same"], None),
    "office.queue_run": (by_queue_run, ["given-1", "given-2"], None),
}
KEYLESS = {
    "office.task_created": (lambda _: ("T0", "ana"), task_created, "unresolved", "event_missing_generation"),
    "office.spawn_run": (lambda run: (run, "ana", "r", {}, ""), spawn_run, "by_design", None),
    "office.spawn_run without a run": (lambda _: (None, "ana", "r", {}, "k"), spawn_run, "unresolved", "no_caller_run"),
    "office.queue_run": (lambda _: ("ana", "r", {}, ""), queue_run, "by_design", None),
}


@pytest.fixture
def t0(acme):
    create_task(acme.engine, "m0", "acme", "a task", task_id="T0", step_id="start", instant=T0)
    return acme


def last_wake(board):
    return board.rows("SELECT * FROM wakes ORDER BY requested_at DESC LIMIT 1")[0]


def test_no_producer_is_missing_from_the_table():
    """PRO-1.1, PRO-3.1: a new producer that is not enumerated here fails."""
    names = {name for name in app.tasks if name.startswith("office.")}
    assert names - WAKES_NOBODY == set(KEYED)


@pytest.mark.parametrize("producer", KEYED)
def test_a_key_differs_between_occurrences_and_not_between_attempts(t0, producer):
    """PRO-1.1, PRO-1.6: two occurrences are two keys and two runs; two attempts at one are one of each."""
    drive, keys, _ = KEYED[producer]
    for n in (1, 2):
        drive(t0.engine, n, f"message-{n}")
        assert last_wake(t0)["key"] == keys[n - 1]
        drive(t0.engine, n, f"message-{n}")
    assert [run["idempotency_key"] for run in t0.runs()] == keys


@pytest.mark.parametrize("producer", KEYED)
def test_which_actor_a_producer_names(t0, producer):
    """PRO-3.1, ADM-5.8: only `assign_task` may ever name an agent as the actor, whoever called the others."""
    drive, _, actor = KEYED[producer]
    drive(t0.engine, 1, "message")
    assert last_wake(t0)["actor_type"] == actor


@pytest.mark.parametrize("producer", KEYED)
def test_a_keyed_wake_has_no_keyless_cause(t0, producer):
    """PRO-4: the cause is the producer's word, and a keyed wake has none."""
    KEYED[producer][0](t0.engine, 1, "message")
    assert (last_wake(t0)["keyless_cause"], last_wake(t0)["keyless_detail"]) == (None, None)


@pytest.mark.parametrize("producer", KEYLESS)
def test_a_keyless_producer_reports_cause_and_detail(t0, producer):
    """PRO-1.1, PRO-1.3, PRO-1.6, PRO-4: never a permanent key: none, with why."""
    arguments, build, cause, detail = KEYLESS[producer]
    engine = (t0.engine,) if build is task_created else ()
    for n in (1, 2):
        asked = build(*engine, f"message-{n}", *arguments(f"run-{n}"))
        assert enqueue(t0.engine, asked, instant=after(minutes=n))["outcome"] == "queued"
        wake = last_wake(t0)
        assert (wake["key"], wake["keyless_cause"], wake["keyless_detail"]) == (None, cause, detail)


def test_one_run_may_use_a_key_once(t0):
    """PRO-1.6: the same literal from one run is deduped, from another it is not."""
    said = [
        enqueue(t0.engine, spawn_run(f"w{n}", run, "ana", "r", {}, "same"), instant=after(minutes=n))["outcome"]
        for n, run in enumerate(["run-1", "run-1", "run-2"])
    ]
    assert said == ["queued", "deduped", "queued"]
