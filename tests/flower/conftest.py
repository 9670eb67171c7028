"""What the tests with a real Flower share."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.flower.flower import OFFICE, Flower
from tests.integration.conftest import caller, worker

__all__ = ["caller", "flower", "start_flower", "worker"]


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
