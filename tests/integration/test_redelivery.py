"""The same broker message twice: admitted once, answered twice the same, counted and logged once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import db
from office_tasks import admin, errors
from tests.integration.caller import events
from tests.integration.faults import setting
from tests.nodes.verbs import wait_for_log
from tests.nodes.waiting import until


def assert_answered_alike(caller, body, message_id):
    """Push one message again and wait until it is done; nothing that it left before may change."""
    first = caller.app.AsyncResult(message_id).get(timeout=30)
    rows = caller.board.wakes(), caller.board.runs()
    caller.app.AsyncResult(message_id).forget()
    assert caller.push(body, headers={"id": message_id}, redelivered=True).get(timeout=30) == first
    assert (caller.board.wakes(), caller.board.runs()) == rows


def test_a_message_delivered_twice_admits_once(worker, caller, subtests):
    """ADM-6.4, ADM-10.2, ADM-10.3, C04, C08: keyless, keyed and coalesced wakes; one row, one count, one log line."""
    bodies = {
        "queued": [["ana", "manual_resume"], {}, {}],
        "coalesced": [["ana", "manual_resume", {"n": 2}], {}, {}],
        "keyed": [["ana", "agent_error", {}, "K1"], {}, {}],
        "deduped": [["bob", "agent_error", {}, "K1"], {}, {}],
    }
    answers = [caller.push(body, headers={"id": f"m-{name}"}).get(timeout=30) for name, body in bodies.items()]
    assert [answer["outcome"] for answer in answers] == ["queued", "coalesced", "queued", "deduped"]
    caller.board.execute("UPDATE runs SET requested_at = requested_at - interval '1 hour'")
    for name, body in bodies.items():
        with subtests.test(name):
            assert_answered_alike(caller, body, f"m-{name}")
    assert len(events(worker.logs(), "run_queued")) == 2
    assert len(events(worker.logs(), "run_deduplicated")) == 1
    assert [run["coalesced_count"] for run in caller.board.runs()] == [2, 1]
    (row,) = caller.board.rows("SELECT * FROM wakes WHERE id = 'm-queued'")
    asked = {"mutation_id": None, "reason": "manual_resume", "agent_profile_id": "ana", "producer": "queue_run"}
    decided = {"state": "decided", "outcome": "queued", "gate": "insert", "attempts": 1, "refusal": None}
    assert {**asked, **decided, "keyless_cause": "by_design", "payload": {}, "key": None}.items() <= row.items()
    assert row["decided_at"] == row["requested_at"]


def test_a_decided_wake_answers_whatever_its_arguments(worker, caller):
    """ADM-10.3: a refusal is raised again from its row after its cause is gone, and other arguments change nothing."""
    admin.set_agent_status(caller.board.engine, "ana", "stopped")
    body = [["ana", "manual_resume"], {}, {}]
    first = caller.error_of(caller.push(body, headers={"id": "m1"}))
    admin.set_agent_status(caller.board.engine, "ana", "active")
    for again in (body, [["bob", "task_comment", {"x": 1}, "K"], {}, {}]):
        caller.app.AsyncResult("m1").forget()
        error = caller.error_of(caller.push(again, headers={"id": "m1"}, redelivered=True))
        assert (type(error), str(error)) == (errors.AgentNotWakeable, str(first))
    assert caller.board.runs() == []
    assert len(caller.board.wakes()) == 1


def test_a_mutation_delivered_twice_commits_once(worker, caller):
    """ADM-6.4, PRO-6.1: settled, it answers from its row; the generation moved once."""
    caller.ask("create_task", "acme", "Paint", task_id="T1", step_id="start")
    body = [["T1", "ana"], {}, {}]
    caller.push(body, headers={"id": "a1", "task": "office.assign_task"}).get(timeout=30)
    first = caller.app.AsyncResult("a1").get()
    caller.app.AsyncResult("a1").forget()
    again = caller.push(body, headers={"id": "a1", "task": "office.assign_task"}, redelivered=True)
    assert again.get(timeout=30) == first
    assert caller.board.rows("SELECT assignment_generation AS n FROM tasks") == [{"n": 1}]
    assert len(caller.board.runs()) == 1


def test_deliveries_that_overlap_on_two_workers_admit_once(start_worker, caller, arm):
    """ADM-6.4, C08: both stand before the decision at once; one row, one answer, `run_queued` logged once."""
    gate = arm("pause")
    workers = [start_worker(concurrency=1, wait=False, env=setting(gate.at("before_deciding"))) for _ in range(2)]
    assert all(worker.ready() for worker in workers)
    gate.once()
    body = [["ana", "manual_resume"], {}, {}]
    results = [caller.push(body, headers={"id": "m1"}) for _ in workers]
    for worker in workers:
        wait_for_log(worker, "Task office.queue_run[m1] received")
    gate.off()
    assert results[0].get(timeout=30)["outcome"] == "queued"
    for worker in workers:
        wait_for_log(worker, "Task office.queue_run[m1] succeeded")
    assert len(caller.board.wakes()) == len(caller.board.runs()) == 1
    assert sum(len(events(worker.logs(), "run_queued")) for worker in workers) == 1


@pytest.mark.office_worker(concurrency=2)
def test_fifty_messages_each_twice(worker, caller):
    """ADM-6.4: every message twice in the queue, two children: as many rows as messages."""
    names = [f"m{number}" for number in range(50)]
    for name in names * 2:
        caller.push([["ana", f"reason-{name}"], {}, {}], headers={"id": name})
    results = [caller.app.AsyncResult(name).get(timeout=60)["outcome"] for name in names]
    until(lambda: caller.redis.llen("admission") + caller.redis.hlen("unacked") == 0, what="the queue is empty")
    assert set(results) == {"queued"}
    assert len(caller.board.wakes()) == len(caller.board.runs()) == len(names)


def test_nothing_deletes_wakes():
    """ADM-10.4: no statement deletes a wake, so an owed one cannot be purged."""
    sources = [path.read_text() for path in Path(db.__file__).parent.rglob("*.py")]
    assert not [found for source in sources for found in re.findall(r"(?i)(?:delete from|truncate)\s+wakes", source)]
