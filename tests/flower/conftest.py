"""What the tests with a real Flower share."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.flower.flower import OFFICE, Flower
from tests.integration.caller import Caller


@pytest.fixture
def caller(celery_setup_app, broker, board):
    """Who asks for wakes; the office is furnished."""
    return Caller(celery_setup_app, broker.container.client, board)


@pytest.fixture
def worker(celery_setup):
    """The worker of the test."""
    return celery_setup.worker


@pytest.fixture
def start_flower(node_engine, office_env):
    """Start a Flower: `start_flower("--option", FLOWER_NAME="…")`; it is awaited."""
    started = []

    def start(*words: str, command: Sequence[str] = OFFICE, **env: str) -> Flower:
        started.append(Flower(node_engine, {**office_env, **env}, command, *words))
        return started[-1].ready()

    yield start
    for flower in started:
        node_engine.remove(flower.node)


@pytest.fixture
def flower(start_flower):
    return start_flower()
