"""Faults that the compose file is written for: its workers stopped in mid-task, its Redis full."""

from __future__ import annotations

import json
import subprocess
import sys

import psutil
import pytest
import redis

from office_tasks.configuration import QUEUES, configuration
from office_tasks.devstack.ports import HOST, pick
from office_tasks.settings import Settings
from tests.deploy.services import service
from tests.integration.faults import setting
from tests.nodes.waiting import until

# Sends one message at each line that it reads, of that many bytes, and says what came of it.
PRODUCER = """
import sys
from office_tasks import queue_run
for number, line in enumerate(sys.stdin):
    said = "sent"
    try:
        queue_run.delay("ana", f"reason-{number}", {"fill": "x" * int(line)})
    except Exception as error:
        said = type(error).__name__
    print(said, flush=True)
"""
SIGKILLED = 137


def test_a_stopped_container_loses_nothing(node_engine, deployed_env, caller, arm):
    """R02: its own command, environment and grace: it ends by itself in mid-task, the rest comes back; one row."""
    about = service("worker")
    assert configuration(Settings())["worker_soft_shutdown_timeout"] < about.grace
    gate = arm("pause")
    env = {**deployed_env, **about.environment, "OFFICE_CONCURRENCY": "1", **setting(gate.at("after_commit"))}
    worker = node_engine.run(about.command, name="worker", env=env)
    caller.ask("create_task", "acme", "x", task_id="T1", step_id="start")
    gate.once()
    result = caller.send("assign_task", "T1", "ana")
    until(lambda: caller.board.count("mutations") == 2, what="the commit")
    worker.stop(timeout=about.grace)
    assert worker.exit_code != SIGKILLED
    assert (caller.board.count("runs"), caller.redis.llen("admission")) == (0, 1)
    gate.off()
    worker.start()
    assert result.get(timeout=40)["wakes"][0]["outcome"] == "queued"
    assert len(caller.board.runs()) == 1
    node_engine.remove(worker)


@pytest.fixture
def shipped_redis(node_engine, programs, tmp_path):
    """A client of a Redis that compose's own command started: nothing but where it listens is added."""
    port = pick()
    shell, flag, script = service("redis").command
    script = script.rstrip().replace("/tmp/", f"{tmp_path}/") + f" --bind {HOST} --port {port} --dir {tmp_path}"
    handle = node_engine.run([shell, flag, script], name="redis", env={"PATH": programs, "REDIS_PASSWORD": "a-word"})
    with redis.Redis(host=HOST, port=port, password="a-word") as client:
        until(lambda: answers(client), 20, "Redis")
        yield client
    node_engine.remove(handle)


def answers(client):
    try:
        return client.ping()
    except redis.ConnectionError:
        return False


@pytest.fixture
def delay(deployed_env, shipped_redis):
    """Return a function that has another process call `.delay()`: `delay(100)` sends a payload of 100 bytes."""
    at = shipped_redis.connection_pool.connection_kwargs
    url = f"redis://:{at['password']}@{at['host']}:{at['port']}/0"
    env = {**deployed_env, "OFFICE_BROKER_URL": url}
    env.pop("OFFICE_RESULT_BACKEND")
    with subprocess.Popen(
        [sys.executable, "-c", PRODUCER], env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as producer:

        def call(size):
            print(size, file=producer.stdin, flush=True)
            return producer.stdout.readline().strip()

        yield call
        producer.stdin.close()


def test_a_full_redis_evicts_nothing(delay, shipped_redis):
    """R04: as compose starts it: a producer gets an error, and every message that it was told is sent is there."""
    assert shipped_redis.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    shipped_redis.config_set("maxmemory", shipped_redis.info("memory")["used_memory"] + 2_000_000)
    said = []
    while not said or said[-1] == "sent":
        said.append(delay(100_000))
    assert 5 < len(said) < 50
    waiting = [json.loads(message) for message in shipped_redis.lrange("admission", 0, -1)]
    assert len(waiting) == len(said) - 1
    assert shipped_redis.info("stats")["evicted_keys"] == 0
    shipped_redis.config_set("maxmemory", 0)
    assert delay(1) == "sent"
    assert shipped_redis.llen("admission") == len(said)


def test_the_shipped_redis_has_a_lock_and_keeps_nothing(shipped_redis, deployed_env):
    """OPS-3, R05: it wants the password, its command line does not show it, and its own health check uses it."""
    port = shipped_redis.connection_pool.connection_kwargs["port"]
    with redis.Redis(host=HOST, port=port) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    shown = psutil.Process(shipped_redis.info("server")["process_id"]).cmdline()
    assert not any("a-word" in word for word in shown)
    assert shipped_redis.config_get("save") == {"save": ""}
    assert shipped_redis.config_get("appendonly") == {"appendonly": "no"}
    shell, flag, script = service("redis").check
    check = [shell, flag, script.replace("redis-cli", f"redis-cli -p {port}")]
    for password, well in (("a-word", True), ("another", False)):
        done = subprocess.run(check, env={**deployed_env, "REDIS_PASSWORD": password}, timeout=30, check=False)
        assert (done.returncode == 0) is well


def test_the_shipped_workers_take_every_queue():
    """REC-3, REC-2.9: one takes what is admitted and beat's ticks; another, whose handlers may be long, executes."""
    taken = [queues(service(name).command) for name in ("worker", "executor")]
    assert taken == [["admission", "recovery"], ["execution"]]
    assert sorted(queue for both in taken for queue in both) == sorted(QUEUES)


def queues(command):
    [option] = [word for word in command if word.startswith("--queues=")]
    return option.partition("=")[2].split(",")
