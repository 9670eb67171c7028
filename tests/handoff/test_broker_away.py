"""The broker frozen, restarted empty, full, or its workers stopped: what is lost, what is not, and who is told."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest
from sqlalchemy.orm import Session

from office_tasks.configuration import configuration
from office_tasks.in_session import enqueue
from office_tasks.settings import Settings
from office_tasks.tasks import settle_mutation
from recovery.relay import relay_once
from tests.integration.faults import setting
from tests.nodes.engine import ROOT
from tests.nodes.verbs import pause, resume, wait_exit, wait_for_log
from tests.nodes.waiting import until

COMPOSE = (ROOT / "docker-compose.yml").read_text()
# Sends one message at each line that it reads, and says what came of it and after how long.
PRODUCER = """
import sys, time
from office_tasks import queue_run
for number, line in enumerate(sys.stdin):
    began, said = time.monotonic(), "sent"
    try:
        queue_run.delay("ana", f"reason-{number}", {"fill": "x" * int(line)})
    except Exception as error:
        said = type(error).__name__
    print(said, time.monotonic() - began, flush=True)
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
        said, seconds = producer.stdout.readline().split()
        return said, float(seconds)

    yield call
    producer.stdin.close()
    producer.wait(20)
    producer.stdout.close()


def test_delay_raises_while_redis_is_frozen(delay, broker):
    """C29 (c): a warm connection to a Redis that stops answering: an error within 5 s, and none afterwards."""
    assert delay()[0] == "sent"
    pause(broker)
    tried = [delay() for _ in range(2)]
    resume(broker)
    assert {said for said, _ in tried} <= {"OperationalError", "RuntimeError"}
    assert max(seconds for _, seconds in tried) < 5
    assert until(lambda: delay()[0] == "sent", 20, "it works again")


def test_a_full_redis_evicts_nothing(delay, caller):
    """R04: with the shipped policy a producer gets an error, and every message that it was told is sent is there."""
    policy = re.search(r"--maxmemory-policy (\w+)", COMPOSE)[1]
    assert policy == "noeviction"
    caller.redis.config_set("maxmemory-policy", policy)
    caller.redis.config_set("maxmemory", caller.redis.info("memory")["used_memory"] + 2_000_000)
    said = []
    while not said or said[-1] == "sent":
        said.append(delay(100_000)[0])
    assert 5 < len(said) < 50
    assert caller.redis.llen("admission") == len(said) - 1
    assert caller.redis.info("stats")["evicted_keys"] == 0
    caller.redis.config_set("maxmemory", 0)
    assert delay()[0] == "sent"
    assert caller.redis.llen("admission") == len(said)


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
        sent = time.monotonic()
        until(lambda n=number: offered(caller, f"round-{n}"), 20, "Redis takes a message")
        until(lambda n=number: len(caller.board.runs()) > n, 30, "a row")
        assert time.monotonic() - sent < 30
    seen = len(worker.logs())
    wait_for_log(worker, "Task recovery.relay_owed", after=seen)


def offered(caller, reason):
    try:
        return caller.send("queue_run", "ana", reason)
    except OSError:
        return None


@pytest.mark.office_worker(concurrency=1)
def test_a_stopped_container_loses_nothing(start_worker, caller, arm):
    """R02: as compose stops it, in mid-task: it ends within its grace, the rest comes back; one row."""
    grace = int(re.search(r"stop_grace_period: (\d+)s", COMPOSE)[1])
    assert configuration(Settings())["worker_soft_shutdown_timeout"] < grace
    assert "REMAP_SIGTERM: SIGQUIT" in COMPOSE
    gate = arm("pause")
    env = {"REMAP_SIGTERM": "SIGQUIT", **setting(gate.at("after_commit"))}
    worker = start_worker(concurrency=1, env=env)
    caller.ask("create_task", "acme", "x", task_id="T1", step_id="start")
    gate.once()
    result = caller.send("assign_task", "T1", "ana")
    until(lambda: caller.board.count("mutations") == 2, what="the commit")
    worker.kill("SIGTERM")
    wait_exit(worker, timeout=grace)
    assert (caller.board.count("runs"), caller.redis.llen("admission")) == (0, 1)
    gate.off()
    worker.restart()
    assert result.get(timeout=40)["wakes"][0]["outcome"] == "queued"
    assert len(caller.board.runs()) == 1


def test_the_shipped_workers_take_every_queue():
    """REC-3, REC-2.9: one takes what is admitted and beat's ticks; another, whose handlers may be long, executes."""
    commands = re.findall(r"command:\s+\[(celery[^\]]*worker[^\]]*)\]", COMPOSE)
    taken = [re.search(r"--queues=(\w+(?:,\w+)*)", command)[1].split(",") for command in commands]
    assert taken == [["admission", "recovery"], ["execution"]]
