"""Fixtures of the tests of metrics: workers with an endpoint each."""

from __future__ import annotations

import pytest

from office_tasks.devstack.ports import pick
from tests.handoff.conftest import beat
from tests.integration.conftest import arm, caller, worker
from tests.telemetry.scraping import Endpoint

__all__ = ["arm", "beat", "caller", "worker"]


@pytest.fixture
def endpoint():
    """The endpoint that the test's workers are told to serve."""
    return Endpoint(pick())


@pytest.fixture
def directories(tmp_path):
    """Where the test's workers keep their counters."""
    (tmp_path / "tmp").mkdir()
    return tmp_path / "tmp"


@pytest.fixture
def office_env(office_env, endpoint, directories):
    """Workers of these tests serve their metrics."""
    return office_env | {"OFFICE_METRICS_PORT": str(endpoint.port), "TMPDIR": str(directories)}
