"""Fixtures of the tests of executions."""

from __future__ import annotations

import pytest

from tests.executing.desk import Desk
from tests.executing.handlers import DIRECTORY
from tests.handoff.conftest import beat
from tests.integration.conftest import arm, caller, worker

__all__ = ["arm", "beat", "caller", "worker"]


@pytest.fixture
def directory(tmp_path):
    """Where handlers write, and look for their gate."""
    path = tmp_path / "handlers"
    path.mkdir()
    return path


@pytest.fixture
def office_env(office_env, directory):
    """Workers of these tests have a handler of these tests."""
    return office_env | {"OFFICE_RUN_HANDLER": "tests.executing.handlers:handle", DIRECTORY: str(directory)}


@pytest.fixture
def desk(board, celery_setup_app, directory):
    """Who asks for runs, and watches them. Needs no worker."""
    return Desk(board, celery_setup_app, directory)
