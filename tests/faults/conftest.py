"""Fixtures of the fault tests."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from tests.faults.gates import Restricted


@pytest.fixture
def restricted(board, make_test_engine):
    role = Restricted(board, make_test_engine)
    yield role
    role.drop()


@pytest.fixture
def moved():
    """Return a function that tells how far a counter moved since the test began: `moved(name, **labels)`."""
    before = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in _samples()}

    def since(name: str, **labels: str) -> float:
        return (REGISTRY.get_sample_value(name, labels) or 0) - before.get((name, frozenset(labels.items())), 0)

    return since


def _samples():
    return [sample for metric in REGISTRY.collect() for sample in metric.samples]
