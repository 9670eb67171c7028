"""The nodes themselves: what integration tests rely on when they kill, pause and restart them."""

from __future__ import annotations

import signal

import pytest
from kombu.exceptions import OperationalError
from pytest_docker_tools.exceptions import TimeoutError as LogTimeoutError

from tests.nodes.verbs import kill_child, pause, pool_pids, resume, wait_exit, wait_for_log
from tests.nodes.waiting import until

LONG = 30


def send(app, task, *args):
    return app.send_task(f"selftest.{task}", args=args)


def begun(store, name):
    """Wait for the next start of a held task; return the pid that began it."""
    answer = store.blpop([f"began:{name}"], timeout=LONG)
    assert answer, f"{name} did not begin"
    return int(answer[1])


def test_the_setup_runs_a_task(celery_setup):
    assert celery_setup.ready(control=True)
    assert send(celery_setup.app, "pid").get(timeout=LONG) in pool_pids(celery_setup.worker)


@pytest.mark.office_worker(env={"OFFICE_COLOUR": "blue"})
def test_a_worker_has_the_environment_of_its_test(celery_setup):
    assert send(celery_setup.app, "env", "OFFICE_COLOUR").get(timeout=LONG) == "blue"
    assert send(celery_setup.app, "env", "PYTEST_CURRENT_TEST").get(timeout=LONG) is None


def test_a_killed_worker_dies_whole_and_its_task_runs_again(celery_setup, store):
    worker = celery_setup.worker
    result = send(celery_setup.app, "hold", "a")
    first = begun(store, "a")
    worker.kill("SIGKILL")
    assert worker.container.status == "exited"
    assert wait_exit(worker) == 128 + signal.SIGKILL
    worker.restart()
    assert begun(store, "a") != first
    store.rpush("go:a", 1)
    assert result.get(timeout=LONG) == "a"


@pytest.mark.office_worker(concurrency=1)
def test_a_killed_child_is_replaced_and_its_task_runs_again(celery_setup, store):
    result = send(celery_setup.app, "hold", "b")
    first = begun(store, "b")
    assert kill_child(celery_setup.worker) == first
    assert begun(store, "b") != first
    store.rpush("go:b", 1)
    assert result.get(timeout=LONG) == "b"
    assert celery_setup.worker.container.status == "running"


def test_a_worker_outlives_a_restart_of_its_broker(celery_setup):
    assert send(celery_setup.app, "pid").get(timeout=LONG)
    broker, worker = celery_setup.broker, celery_setup.worker
    broker.container.client.set("before", 1)
    seen = len(worker.logs())
    broker.restart(force=True)
    wait_for_log(worker, "Connected to redis", after=seen)
    assert broker.container.client.get("before") is None
    assert send(celery_setup.app, "pid").get(timeout=LONG)


def test_a_paused_broker_answers_nobody_until_resumed(celery_setup_app, broker):
    fast = {"max_retries": 0, "interval_start": 0}
    celery_setup_app.conf.update(
        broker_transport_options={"socket_timeout": 0.5, **fast},
        task_publish_retry_policy=fast,
        task_ignore_result=True,
    )
    send(celery_setup_app, "pid")
    pause(broker)
    assert broker.container.status == "paused"
    with pytest.raises(OperationalError):
        send(celery_setup_app, "pid")
    resume(broker)
    send(celery_setup_app, "pid")
    assert broker.container.client.llen("celery") >= 2


def test_several_workers_share_one_broker(start_worker, store, celery_setup_app):
    workers = [start_worker(concurrency=1, wait=False) for _ in range(2)]
    assert all(worker.ready() for worker in workers)
    assert len({worker.hostname() for worker in workers}) == 2
    results = [send(celery_setup_app, "hold", name) for name in ("c", "d")]
    assert {begun(store, "c"), begun(store, "d")} == {pool_pids(worker)[0] for worker in workers}
    store.rpush("go:c", 1)
    store.rpush("go:d", 1)
    assert [result.get(timeout=LONG) for result in results] == ["c", "d"]


@pytest.mark.parametrize(
    "pool", [pytest.param(pool, marks=pytest.mark.office_worker(pool=pool)) for pool in ("threads", "solo")]
)
def test_pools_without_children(pool, celery_setup):
    alone = celery_setup.worker.get_running_processes_info(["pid"])
    assert {"pid": send(celery_setup.app, "pid").get(timeout=LONG)} in alone
    assert pool_pids(celery_setup.worker) == []


@pytest.mark.office_worker(concurrency=3)
def test_concurrency_is_the_tests_choice(celery_setup):
    assert len(until(lambda: pool_pids(celery_setup.worker))) == 3


@pytest.mark.office_worker(queues="slow")
def test_queues_are_the_tests_choice(celery_setup):
    assert celery_setup.app.send_task("selftest.pid", queue="slow").get(timeout=LONG)


def test_a_terminated_worker_ends_by_itself(start_worker):
    worker = start_worker()
    worker.kill("SIGTERM")
    assert wait_exit(worker) == 0
    wait_for_log(worker, "Warm shutdown")


def test_waiting_for_a_log_is_bounded(start_worker):
    worker = start_worker()
    worker.wait_for_log("ready.")
    with pytest.raises(LogTimeoutError):
        worker.wait_for_log("never said", timeout=1)
    with pytest.raises(TimeoutError, match="never said"):
        wait_for_log(worker, "never said", timeout=0.1)
