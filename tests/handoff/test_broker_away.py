"""The broker frozen or restarted empty: what is lost, what is not, and who is told."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sqlalchemy.orm import Session

from office_tasks.in_session import enqueue
from office_tasks.tasks import settle_mutation
from recovery.relay import relay_once
from tests.nodes.engine import ROOT
from tests.nodes.verbs import pause, resume, wait_for_log
from tests.nodes.waiting import until

# Sends one message at each line that it reads, and says what came of it. A call that hangs is its end.
PRODUCER = """
import signal, sys
from office_tasks import queue_run
for number, line in enumerate(sys.stdin):
    said = "sent"
    signal.alarm(5)
    try:
        queue_run.delay("ana", f"reason-{number}", {"fill": "x" * int(line)})
    except Exception as error:
        said = type(error).__name__
    signal.alarm(0)
    print(said, flush=True)
"""


@pytest.fixture
def delay(process_env):
    """Return a function that calls `.delay()` in a producer's own process, its connections warm from the second on."""
    producer = subprocess.Popen(
        [sys.executable, "-c", PRODUCER],
        cwd=ROOT, env=process_env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip

    def call(size=1):
        print(size, file=producer.stdin, flush=True)
        return producer.stdout.readline().strip()

    yield call
    producer.stdin.close()
    producer.wait(20)
    producer.stdout.close()


def test_delay_raises_while_redis_is_frozen(delay, broker):
    """C29 (c): a warm connection to a Redis that stops answering: an error within 5 s, and none afterwards."""
    assert delay() == "sent"
    pause(broker)
    tried = [delay() for _ in range(2)]
    resume(broker)
    assert set(tried) == {"OperationalError"}
    assert until(lambda: delay() == "sent", 20, "it works again")


def test_what_only_redis_knew_is_lost_with_it(board, caller, broker, at, monkeypatch):
    """PRO-6.5, C34: messages that waited are gone; what a caller's transaction committed is admitted."""
    caller.send("create_task", "acme", "x", task_id="T1", step_id="start", assignee_id="ana")
    caller.send("queue_run", "ana", "lost")
    monkeypatch.setattr(settle_mutation, "apply_async", lambda _args, **_: None)
    with Session(board.engine) as session:
        enqueue(session, "ana", "kept")
        session.commit()
    assert caller.redis.llen("admission") == 2
    broker.kill("SIGKILL")
    broker.restart()
    assert caller.redis.llen("admission") == 0
    relay_once(at(days=10_000), None)
    assert [run["reason"] for run in board.runs()] == ["kept"]
    assert "a message, not a promise" in (ROOT / "README.md").read_text()


@pytest.mark.office_worker(concurrency=1, queues="admission,recovery,execution")
def test_idle_workers_come_back_to_a_restarted_redis(worker, beat, caller, broker):
    """C34: three times in a row: Redis restarted under an idle worker, a row within 30 s; beat resumes as well."""
    for number in range(3):
        broker.restart()
        until(lambda n=number: offered(caller, f"round-{n}"), 20, "Redis takes a message")
        until(lambda n=number: len(caller.board.runs()) > n, 30, "a row")
    seen = len(worker.logs())
    wait_for_log(worker, "Task recovery.relay_owed", after=seen)


def offered(caller, reason):
    try:
        return caller.send("queue_run", "ana", reason)
    except OSError:
        return None
