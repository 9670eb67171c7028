"""Workers killed at each point between the change and its settling, by SIGKILL, and messages that kill every time."""

from __future__ import annotations

import pytest

from office_tasks import errors
from tests.integration.caller import events
from tests.integration.faults import setting
from tests.nodes.verbs import kill_child, wait_for_log
from tests.nodes.waiting import until

# The shortest that the settings allow, so that what a dead worker held comes back soon.
QUICK = {"OFFICE_VISIBILITY_TIMEOUT": "6", "OFFICE_TIME_LIMIT": "5", "OFFICE_SOFT_TIME_LIMIT": "4"}
PATIENT = {"OFFICE_VISIBILITY_TIMEOUT": "9", "OFFICE_TIME_LIMIT": "8", "OFFICE_SOFT_TIME_LIMIT": "7"}
POINTS = ("before_commit", "after_commit", "before_deciding", "after_deciding")


def generations(caller):
    return {row["id"]: row["assignment_generation"] for row in caller.board.rows("SELECT * FROM tasks")}


def deliveries(caller):
    return {row["id"]: row["deliveries"] for row in caller.board.rows("SELECT * FROM deliveries")}


@pytest.fixture
def kills(arm):
    return {point: arm("kill") for point in POINTS}


@pytest.fixture
def start_armed(start_worker, kills):
    def start(concurrency=1, **env):
        points = setting(*(fault.at(point) for point, fault in kills.items()))
        return start_worker(concurrency=concurrency, env={**QUICK, **points, **env})

    return start


def test_mutations_outlive_their_children(start_armed, kills, caller):
    """PRO-6.1, OPS-5, C27 (a), (c): killed around the commit and around the decision: one row of each."""
    tasks = [f"T{number}" for number in range(6)]
    worker = start_armed(concurrency=4)
    for task in tasks:
        caller.ask("create_task", "acme", "Paint", task_id=task, step_id="start")
    for fault in kills.values():
        fault.once()
    sent = [caller.send("assign_task", task, "ana") for task in tasks]
    for fault in kills.values():
        fault.struck()
    done = [each.get(timeout=60) for each in sent]
    assert [[wake["outcome"] for wake in each["wakes"]] for each in done] == [["queued"]] * len(tasks)
    assert {run for each in done for run in each["runs"]} == {str(run["id"]) for run in caller.board.runs()}
    assert len(caller.board.runs()) == len(tasks)
    assert generations(caller) == dict.fromkeys(tasks, 1)
    assert caller.board.count("mutations") == caller.board.count("events") == 2 * len(tasks)
    assert [wake["state"] for wake in caller.board.wakes()] == ["decided"] * len(tasks)
    delivered = caller.board.rows("SELECT sum(deliveries - 1) AS again, count(poisoned_at) AS poisoned FROM deliveries")
    assert delivered == [{"again": len(POINTS), "poisoned": 0}]
    assert worker.container.status == "running"


def test_a_bare_wake_outlives_its_child_and_its_worker(start_worker, caller, arm):
    """C27 (a), (b), ADM-6.4, ADM-10.2: kill -9 the child before the decision, then all: one row."""
    gate = arm("pause")
    worker = start_worker(concurrency=1, env={**PATIENT, **setting(gate.at("before_deciding"))})
    gate.once()
    result = caller.send("queue_run", "ana", "manual_resume")
    wait_for_log(worker, f"{result.id}] received")
    kill_child(worker)
    until(lambda: deliveries(caller) == {result.id: 2}, what="delivered again")
    worker.kill("SIGKILL")
    assert caller.board.wakes() == []
    gate.off()
    worker.restart()
    assert result.get(timeout=40)["outcome"] == "queued"
    assert len(caller.board.runs()) == len(caller.board.wakes()) == 1
    assert deliveries(caller) == {result.id: 3}


def test_messages_that_keep_killing_are_closed_at_their_sixth_delivery(start_armed, kills, caller):
    """ADM-10.5, C27 (d): bare, mutating, never committing: `poisoned`, logged, visible; the worker goes on."""
    worker = start_armed(concurrency=3)
    caller.ask("create_task", "acme", "Paint", task_id="T1", step_id="start")
    kills["before_deciding"].always()
    bare, mutation = caller.send("queue_run", "ana", "manual_resume"), caller.send("assign_task", "T1", "ana")
    until(lambda: caller.board.count("mutations") == 2, what="the assignment commits")
    kills["before_commit"].always()
    uncommitted = caller.send("create_task", "acme", "Paint", task_id="T2", step_id="start", assignee_id="ana")
    sent = [bare, mutation, uncommitted]
    assert [type(caller.error_of(each, timeout=90)) for each in sent] == [errors.Poisoned] * 3
    kills["before_deciding"].off()
    kills["before_commit"].off()
    closed = {wake["id"]: (wake["state"], wake["outcome"], wake["refusal"]) for wake in caller.board.wakes()}
    assert closed == dict.fromkeys((bare.id, f"{mutation.id}#1"), ("decided", "none", "poisoned"))
    assert {line["wake_id"] for line in events(worker.logs(), "wake_poisoned")} == set(closed)
    assert deliveries(caller) == dict.fromkeys((each.id for each in sent), 6)
    assert caller.board.rows("SELECT count(poisoned_at) AS n FROM deliveries") == [{"n": 3}]
    assert caller.board.runs() == []
    assert generations(caller) == {"T1": 1}
    (settled,) = caller.board.rows("SELECT result FROM mutations WHERE kind = 'assign_task'")
    assert [wake["refusal"] for wake in settled["result"]["wakes"]] == ["poisoned"]
    assert caller.ask("queue_run", "ana", "manual_resume")["outcome"] == "queued"
