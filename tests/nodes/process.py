"""Fixtures of process mode: the three containers of pytest-celery, as processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.nodes.engine import ProcEngine
from tests.nodes.redis import run_redis
from tests.nodes.worker import run_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from tests.nodes.redis import ProcRedis
    from tests.nodes.worker import ProcWorker

TAIL = 6_000


@pytest.fixture(scope="session")
def node_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcEngine]:
    """What starts the nodes of this test run and ends them."""
    engine = ProcEngine(tmp_path_factory.mktemp("nodes"))
    yield engine
    engine.close()


@pytest.fixture
def default_redis_broker(node_engine: ProcEngine) -> Iterator[ProcRedis]:
    redis = run_redis(node_engine, "broker")
    yield redis
    node_engine.remove(redis._container)


@pytest.fixture
def default_redis_backend(node_engine: ProcEngine) -> Iterator[ProcRedis]:
    redis = run_redis(node_engine, "backend")
    yield redis
    node_engine.remove(redis._container)


@pytest.fixture
def run_worker_container(node_engine: ProcEngine) -> Iterator[Callable[..., ProcWorker]]:
    """Start a worker from its command and environment; it may not be ready yet. Ends them all."""
    started: list[ProcWorker] = []

    def run(command: Sequence[str], env: Mapping[str, str]) -> ProcWorker:
        started.append(run_worker(node_engine, command, env))
        return started[-1]

    yield run
    for worker in started:
        node_engine.remove(worker._container)


@pytest.fixture
def default_worker_container(
    run_worker_container: Callable[..., ProcWorker],
    default_worker_command: list[str],
    default_worker_env: dict[str, str],
) -> ProcWorker:
    worker = run_worker_container(default_worker_command, default_worker_env)
    worker.ready()
    return worker


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the logs of the nodes in the report of a test that failed with them; pytest-docker-tools shows some."""
    report = yield
    engine = getattr(item, "funcargs", {}).get("node_engine")
    if report.failed and engine:
        titles = " ".join(title for title, _ in report.sections)
        for handle in (handle for handle in engine.handles if handle.name not in titles):
            report.sections.append((f"log of {handle.name}", handle.logs().decode(errors="replace")[-TAIL:]))
    return report
