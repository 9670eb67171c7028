"""Fixtures of the termination tests: a furnished office whose seats and sessions are moved in one line each."""

from __future__ import annotations

import pytest

from office_tasks import admin
from tests.admission.conftest import acme, admission_engine, admission_url  # noqa: F401 - they are fixtures
from tests.faults.conftest import moved  # noqa: F401 - it is a fixture
from tests.termination.stage import Stage


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
