"""Fixtures of the termination tests: a furnished office whose seats and sessions are moved in one line each."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from office_tasks import admin
from office_tasks.faults import ENVIRONMENT
from tests.admission.conftest import acme, admission_engine, admission_url  # noqa: F401 - they are fixtures
from tests.faults.conftest import restricted  # noqa: F401 - it is a fixture
from tests.integration.faults import Fault
from tests.nodes.waiting import until
from tests.recovery.conftest import cut_off  # noqa: F401 - it is a fixture
from tests.termination.stage import Present, Stage


@pytest.fixture
def database_url(admission_url):  # noqa: F811 - the fixture that is imported
    """Every engine of these tests is on the one database that they share, one after the other."""
    return admission_url


@pytest.fixture
def board(acme):  # noqa: F811 - the fixture that is imported
    """A third agent, and a step that has a primary agent, join the office."""
    admin.create_agent(acme.engine, "acme", "cleo")
    admin.create_step(acme.engine, "acme", "led", workflow_id="flow", primary_agent_id="cleo")
    return acme


@pytest.fixture
def stage(board):
    return Stage(board)


@pytest.fixture
def present(board):
    """The stage, for what executes while things change."""
    return Present(board)


@pytest.fixture
def pause_at(monkeypatch, tmp_path):
    """Return a context in whose block everybody waits at a fault point, until the block's end or what it yields."""

    @contextmanager
    def paused(point):
        fault = Fault("pause", tmp_path / point)
        with monkeypatch.context() as patch:
            patch.setenv(ENVIRONMENT, fault.at(point))
            fault.once()
            try:
                yield fault.off
            finally:
                fault.off()

    return paused


@pytest.fixture
def committed(board):
    """Return a function that waits until a mutation is committed, and not settled: somebody stands behind it."""

    def wait(message):
        query = "SELECT 1 FROM mutations WHERE id = :id AND settled_at IS NULL"
        until(lambda: board.rows(query, id=message), what=f"{message} committed")

    return wait


@pytest.fixture
def session(stage):
    """The conversation of `ana`, who holds no capacity, on task T1."""
    stage.create()
    return stage.converse()
