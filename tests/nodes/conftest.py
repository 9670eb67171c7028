"""The tests of the nodes run an app of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from redis import Redis


@pytest.fixture
def worker_app():
    return "tests.nodes.selftest_app"


@pytest.fixture
def default_worker_initial_content(default_worker_initial_content):
    """In docker mode: the project's image holds no tests, so the app comes with the volume."""
    source = Path(__file__).with_name("selftest_app.py").read_bytes()
    return {**default_worker_initial_content, "tests/nodes/selftest_app.py": source}


@pytest.fixture
def store(backend):
    """A client of the backend's Redis, where held tasks say that they began."""
    with Redis.from_url(
        backend.container.celeryconfig["host_url"], decode_responses=True, socket_timeout=None
    ) as client:
        yield client


@pytest.fixture
def celery_setup_config(celery_setup_cls, celery_worker_cluster_config):
    """pytest-celery's own: the queue is the self-test app's default, not admission's."""
    return celery_setup_cls.config(celery_worker_cluster_config=celery_worker_cluster_config)
