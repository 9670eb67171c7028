"""The examples, run as the processes that a reader would start."""

from __future__ import annotations

import subprocess
import sys

import pytest

from office_tasks.devstack import ports
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.creation import create_task
from office_tasks.stream import EventStream
from recovery.relay import relay_once
from tests.nodes.engine import ROOT
from tests.nodes.waiting import until
from tests.support import T0, after


def example(env, name, *args):
    return subprocess.run(
        [sys.executable, f"examples/{name}.py", *args],
        cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture
def t1(board):
    create_task(board.engine, "c1", "acme", "one", task_id="T1", step_id="start", instant=T0)
    return board


def test_an_order_and_its_assignment_commit_together(t1, worker, process_env):
    """PRO-6.3: the business row, the seat, and a run that a worker admitted at once, without the relay."""
    done = example(process_env, "assign_in_session", "T1", "ana")
    mutation_id = done.stdout.strip()
    assert (done.returncode, done.stderr) == (0, "")
    assert t1.rows("SELECT * FROM example_orders") == [{"id": "order-of-T1", "task_id": "T1"}]
    until(lambda: t1.count("runs") == 1, 20, "the worker admits the wake")
    (wake,) = t1.wakes()
    assert (wake["mutation_id"], wake["outcome"]) == (mutation_id, "queued")


def test_neither_happens_when_one_cannot(t1, process_env):
    """PRO-6.3: no such agent, no order; and a second order of one id takes no assignment with it."""
    assert "NotFound" in example(process_env, "assign_in_session", "T1", "nobody").stderr
    assert t1.count("example_orders") == 0
    t1.execute("INSERT INTO example_orders VALUES ('order-of-T1', 'T1')")
    assert "IntegrityError" in example(process_env, "assign_in_session", "T1", "ana").stderr
    assert t1.rows("SELECT assignment_generation AS n FROM tasks") == [{"n": 0}]
    assert (t1.count("wakes"), t1.count("mutations")) == (0, 1)


def test_the_broker_is_down_when_the_order_commits(t1, process_env, at):
    """PRO-6.3, PRO-6.5: the order stands, the process says what it could not send, and the relay admits the wake."""
    nowhere = f"redis://127.0.0.1:{ports.pick()}/0"
    env = {**process_env, "OFFICE_BROKER_URL": nowhere, "OFFICE_RESULT_BACKEND": nowhere}
    done = example(env, "assign_in_session", "T1", "ana")
    assert done.returncode == 0
    assert "settle_not_sent" in done.stdout + done.stderr
    assert t1.count("example_orders") == 1
    relay_once(at(days=10_000), None)
    assert [wake["outcome"] for wake in t1.wakes()] == ["queued"]


def test_the_follower_prints_each_event_once(t1, broker, process_env, node_engine):
    """PRO-7.1: it follows from the beginning and on; an event that was said twice is printed once."""
    url = process_env["OFFICE_BROKER_URL"]
    out = EventStream(url)
    relay_once(t1.engine, out)
    follower = node_engine.run([sys.executable, "examples/follow_events.py", "0"], name="follower", env=process_env)

    def lines():
        return [line.split()[1:] for line in follower.logs_since_start().splitlines()]

    until(lambda: len(lines()) == 1, 20, "the first event")
    assign_task(t1.engine, "a1", "T1", "ana", instant=after(seconds=1))
    for _ in range(2):
        t1.execute("UPDATE events SET sent_at = NULL")
        relay_once(t1.engine, out)
    until(lambda: len(lines()) == 2, 20, "the second event")
    assign_task(t1.engine, "a2", "T1", "bob", instant=after(seconds=2))
    relay_once(t1.engine, out)
    until(lambda: len(lines()) == 3, 20, "the third event")
    out.close()
    node_engine.remove(follower)
    assert lines()[1:] == [["task_assignee_changed", "T1", "assignee"]] * 2
    assert lines()[0][:2] == ["task_created", "T1"]
