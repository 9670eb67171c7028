"""The pytest plugin of the nodes: the switch between processes and containers, and what both modes share."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from celery import _state
from pytest_celery import CeleryBackendCluster, CeleryBrokerCluster

from tests.nodes import docker as docker_nodes
from tests.nodes import process as process_nodes
from tests.nodes.worker import WorkerOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from celery import Celery
    from pytest_celery import (
        CeleryTestBackend,
        CeleryTestBroker,
        CeleryTestWorker,
        CeleryWorkerContainer,
        RedisTestBackend,
        RedisTestBroker,
    )

SWITCH = "PYTEST_CELERY_NODES"
MODES = {"process": process_nodes, "docker": docker_nodes}
MARKER = "office_worker(concurrency, pool, queues, env, args, log_level): the options of the test's workers"


def pytest_configure(config: pytest.Config) -> None:
    """Choose the nodes. Registered last, their fixtures replace pytest-celery's of the same names."""
    config.addinivalue_line("markers", MARKER)
    mode = os.environ.get(SWITCH) or ("docker" if docker_nodes.answers() else "process")
    if mode not in MODES:
        raise pytest.UsageError(f"{SWITCH}={mode!r}: expected process or docker")
    config.pluginmanager.register(MODES[mode], "office-nodes")


@pytest.fixture
def celery_broker_cluster(celery_redis_broker: RedisTestBroker) -> Iterator[CeleryBrokerCluster]:
    """Redis alone: pytest-celery would run each test with RabbitMQ too."""
    cluster = CeleryBrokerCluster(celery_redis_broker)
    yield cluster
    cluster.teardown()


@pytest.fixture
def celery_backend_cluster(celery_redis_backend: RedisTestBackend) -> Iterator[CeleryBackendCluster]:
    """Redis alone, and not the broker's: a test can take away one and leave the other."""
    cluster = CeleryBackendCluster(celery_redis_backend)
    yield cluster
    cluster.teardown()


@pytest.fixture
def broker(celery_broker_cluster: CeleryBrokerCluster) -> CeleryTestBroker:
    """The broker's node."""
    return celery_broker_cluster[0]


@pytest.fixture
def backend(celery_backend_cluster: CeleryBackendCluster) -> CeleryTestBackend:
    """The result backend's node."""
    return celery_backend_cluster[0]


@pytest.fixture
def celery_setup_app(celery_setup_app: Celery) -> Iterator[Celery]:
    """pytest-celery's app of the test's side, with its connections closed and the current app restored at the end."""
    before = _state._tls.current_app
    yield celery_setup_app
    celery_setup_app.close()
    _state._tls.current_app = before


@pytest.fixture
def worker_app() -> str:
    """The app that workers run (`-A`)."""
    return "office_tasks"


@pytest.fixture
def office_env(
    celery_broker_cluster: CeleryBrokerCluster, celery_backend_cluster: CeleryBackendCluster
) -> dict[str, str]:
    """The environment of every worker; a conftest adds the database: `return office_env | {...}`."""
    return {
        "OFFICE_BROKER_URL": ";".join(celery_broker_cluster.config()["urls"]),
        "OFFICE_RESULT_BACKEND": ";".join(celery_backend_cluster.config()["urls"]),
    }


@pytest.fixture
def worker_options(request: pytest.FixtureRequest) -> WorkerOptions:
    """The test's choice: the keywords of its closest marker `office_worker(...)`."""
    marker = request.node.get_closest_marker("office_worker")
    return WorkerOptions(**marker.kwargs) if marker else WorkerOptions()


@pytest.fixture
def default_worker_command(
    worker_options: WorkerOptions, worker_app: str, default_worker_container_cls: type[CeleryWorkerContainer]
) -> list[str]:
    """The command of `celery_setup.worker`."""
    return worker_options.command(worker_app, default_worker_container_cls.worker_name())


@pytest.fixture
def default_worker_env(office_env: dict[str, str], worker_options: WorkerOptions) -> dict[str, str]:
    """The environment of `celery_setup.worker`: our settings, and no CELERY_* behind their back."""
    return {**office_env, **worker_options.env}


@pytest.fixture
def start_worker(
    *,
    run_worker_container: Callable[..., CeleryWorkerContainer],
    worker_options: WorkerOptions,
    worker_app: str,
    office_env: dict[str, str],
    default_worker_cls: type[CeleryTestWorker],
    default_worker_container_cls: type[CeleryWorkerContainer],
    celery_setup_app: Celery,
) -> Callable[..., CeleryTestWorker]:
    """Start one more worker and wait for it: `start_worker(concurrency=1, pool="threads", env={...}, app="…")`.

    `wait=False` returns at once; `worker.ready()` waits later, so several boot together.
    """

    def start(*, app: str = worker_app, wait: bool = True, **options: Any) -> CeleryTestWorker:
        chosen = replace(worker_options, **options)
        command = chosen.command(app, default_worker_container_cls.worker_name())
        worker = default_worker_cls(run_worker_container(command, {**office_env, **chosen.env}), celery_setup_app)
        if wait:
            worker.ready()
        return worker

    return start
