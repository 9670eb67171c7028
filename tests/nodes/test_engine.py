"""The engine of the process nodes: nothing it started outlives it, however it ends; and the switch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import psutil
import pytest
from pytest_docker_tools.exceptions import ContainerFailed

from office_tasks.devstack import ports
from tests.nodes.docker import answers
from tests.nodes.engine import ROOT, ProcEngine
from tests.nodes.handle import signal_number
from tests.nodes.reaper import listed
from tests.nodes.redis import run_redis
from tests.nodes.waiting import until

FAMILY = ["/bin/sh", "-c", "tail -f /dev/null & echo started; wait"]
HOST = """
import sys
from pathlib import Path
from tests.nodes.engine import ProcEngine
engine = ProcEngine(Path(sys.argv[1]))
handle = engine.run(["/bin/sh", "-c", "tail -f /dev/null & echo started; wait"], name="family", env={})
print(handle.pid, flush=True)
sys.stdin.read()
"""


def session(pid):
    """Return the living processes of a session."""
    found = []
    for process in psutil.process_iter(["status"]):
        try:
            if os.getsid(process.pid) == pid and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except ProcessLookupError:
            continue
    return found


@pytest.fixture
def engine(tmp_path):
    engine = ProcEngine(tmp_path)
    yield engine
    engine.close()


@pytest.fixture
def family(engine):
    handle = engine.run(FAMILY, name="family", env={})
    until(lambda: len(handle.pids()) == 2, what="parent and child")
    return handle


@contextmanager
def running(*words, **options):
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def pytest_run(*words, **env):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", *words],
        cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


def test_a_closed_engine_leaves_no_process(tmp_path):
    engine = ProcEngine(tmp_path)
    nodes = [run_redis(engine, "broker")._container, engine.run(FAMILY, name="family", env={})]
    pids = [node.pid for node in nodes]
    assert all(session(pid) for pid in pids)
    engine.close()
    assert [session(pid) for pid in pids] == [[], []]
    assert engine.handles == []


def test_nodes_die_with_a_killed_test_run(tmp_path):
    with running(sys.executable, "-c", HOST, str(tmp_path), env={**os.environ, "PYTHONPATH": str(ROOT)}) as host:
        pid = int(host.stdout.readline())
        until(lambda: len(session(pid)) == 2, what="parent and child")
        host.kill()
        until(lambda: not session(pid), what="the node gone")


def test_the_reaper_forgets_what_was_torn_down():
    assert listed([b"+5\n", b"+6\n", b"-5\n"]) == {6}


def test_a_node_tells_its_state_as_docker_does(family):
    assert (family.status, family.exit_code) == ("running", None)
    family.pause()
    assert family.status == "paused"
    family.unpause()
    family.kill("SIGKILL")
    assert (family.status, family.exit_code, family.pids()) == ("exited", 137, [])
    assert family.attrs["State"]["ExitCode"] == 137


def test_a_main_process_killed_from_outside_takes_its_children(family):
    os.kill(family.pid, signal.SIGKILL)
    family.wait(timeout=10)
    until(lambda: not session(family.pid), what="the children gone")


def test_a_dead_redis_comes_back_empty_on_its_port(engine):
    redis = run_redis(engine, "broker")
    port = redis.port
    redis.client.set("before", 1)
    redis.kill("SIGKILL")
    redis.restart()
    assert redis.port == port
    assert redis.client.get("before") is None


def test_a_server_that_cannot_start_says_why(engine, monkeypatch):
    monkeypatch.setenv("REDIS_SERVER_BIN", "/bin/false")
    with pytest.raises(ContainerFailed, match="exited with 1"):
        run_redis(engine, "broker")


def test_a_port_lost_to_another_server_is_given_up(engine, monkeypatch):
    first = run_redis(engine, "broker")
    offered = [ports.pick(), first.port]
    monkeypatch.setattr(ports, "pick", offered.pop)
    assert run_redis(engine, "broker").port not in (first.port, None)
    assert offered == []


def test_a_paused_node_can_be_killed(family):
    family.pause()
    family.kill()
    assert family.status == "exited"


def test_a_restart_keeps_name_and_log(family):
    name, first = family.name, family.pid
    until(lambda: b"started" in family.logs(), what="its first line")
    family.restart(timeout=5)
    until(lambda: family.logs().count(b"started") == 2, what="its second line")
    assert family.name == name
    assert family.pid != first
    assert family.logs_since_start().strip() == "started"


def test_a_stubborn_node_is_killed_when_it_does_not_stop(engine):
    node = engine.run(["/bin/sh", "-c", "trap '' TERM; echo deaf; tail -f /dev/null"], name="deaf", env={})
    until(lambda: b"deaf" in node.logs(), what="its trap")
    node.stop(timeout=0.1)
    assert node.exit_code == 137


def test_a_command_runs_beside_the_node(family):
    code, output = family.exec_run("python -c 'import os; print(os.environ[\"NODE_PID\"])'")
    assert (code, int(output)) == (0, family.pid)
    assert family.exec_run("false").exit_code == 1


@pytest.mark.parametrize(("given", "number"), [("TERM", 15), ("SIGTERM", 15), (15, 15), (None, 9)])
def test_signals_have_dockers_names(given, number):
    assert signal_number(given) == signal.Signals(number)


def test_a_missing_engine_is_noticed(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    assert not answers()


def test_docker_mode_says_that_there_is_no_engine(tmp_path):
    done = pytest_run(
        "tests/nodes/test_nodes.py::test_a_paused_broker_answers_nobody_until_resumed",
        PYTEST_CELERY_NODES="docker",
        DOCKER_HOST=f"unix://{tmp_path}/no.sock",
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "PYTEST_CELERY_NODES=docker, but no Docker engine answers at" in done.stdout


def test_an_unknown_mode_is_refused():
    done = pytest_run("--collect-only", "tests/nodes", PYTEST_CELERY_NODES="podman")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "PYTEST_CELERY_NODES='podman': expected process or docker" in done.stderr
