"""What workers write: JSON lines, and never a payload, a key, or the body of a message."""

from __future__ import annotations

import json

import pytest

from office_tasks import admin
from tests.nodes.waiting import until

CANARY = "canary-7f3a"
PAYLOAD = {"task_id": "T1", "comment": CANARY, "actor_type": "agent", "actor_id": "bob"}


def say_it_everywhere(caller):
    """Drive successes and each error path, the canary in payloads, keys, titles and bodies; wait for all answers."""
    engine = caller.board.engine
    admin.create_agent(engine, "acme", "sam", status="stopped")
    admin.create_agent(engine, "acme", "lost")
    caller.board.execute("UPDATE agents SET workspace_id = NULL WHERE id = 'lost'")
    caller.board.execute("ALTER TABLE runs ADD CONSTRAINT no_such CHECK (reason <> 'fails')")
    caller.ask("create_task", "acme", CANARY, task_id="T1", step_id="start", assignee_id="ana")
    for call in (
        ("ana", "manual_resume", PAYLOAD),
        ("ana", "manual_resume", PAYLOAD),
        ("ana", "agent_error", PAYLOAD, CANARY),
        *[("bob", "task_assigned", {**PAYLOAD, "n": n}) for n in range(2)],
        ("sam", "manual_resume", PAYLOAD, CANARY),
        ("nina", "manual_resume", PAYLOAD),
        ("ana", "fails", PAYLOAD, f"{CANARY}-2"),
        ("ana", "manual_resume", {CANARY: "\0"}),
        ("ana", "manual_resume", PAYLOAD, f"{CANARY}\0"),
        ("", "manual_resume", PAYLOAD),
        ("ana", "manual_resume", PAYLOAD, "k", CANARY),
    ):
        caller.push([list(call), {}, {}]).get(timeout=30, propagate=False)
    for body in ({CANARY: 1}, f'"{CANARY}"', "{" + CANARY, [[CANARY], {}, [CANARY]]):
        caller.push(body)
    for headers in ({"task": "office.zork"}, {"task": None}, {"eta": "soon"}, {"id": "a\0"}):
        caller.push([[CANARY], {"payload": CANARY}, {}], headers=headers)
    caller.push([[CANARY], {}, {}], content_type="application/x-python-serialize")
    caller.push([["lost", "manual_resume", PAYLOAD], {}, {}]).get(timeout=60, propagate=False)
    until(lambda: caller.redis.llen("admission") + caller.redis.hlen("unacked") == 0, what="all is done")


@pytest.mark.office_worker(
    log_level="DEBUG",
    env={
        "OFFICE_LOG_LEVEL": "DEBUG",
        "OFFICE_VISIBILITY_TIMEOUT": "6",
        "OFFICE_TIME_LIMIT": "5",
        "OFFICE_SOFT_TIME_LIMIT": "4",
    },
)
def test_no_line_holds_what_callers_sent(worker, caller):
    """ADM-9.3: successes, refusals, database errors, retries, malformed messages; every line is JSON, at DEBUG too."""
    started = len(worker.logs())
    say_it_everywhere(caller)
    lines = worker.logs()[started:].splitlines()
    assert [line for line in lines if CANARY in line] == []
    parsed = [json.loads(line) for line in lines]
    assert all({"event", "level", "timestamp"} <= line.keys() for line in parsed)
    assert {"message_malformed", "task_unknown", "pause_gate_unavailable"} <= {line["event"] for line in parsed}
