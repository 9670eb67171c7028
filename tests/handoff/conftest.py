"""Fixtures of the hand-off tests: those of the recovery tests, and those of the tests with real workers."""

from __future__ import annotations

import os

import pytest

from tests.integration.conftest import arm, caller, worker
from tests.nodes.engine import ROOT
from tests.recovery.conftest import at, cut_off, leave_owed

__all__ = ["arm", "at", "caller", "cut_off", "leave_owed", "process_env", "worker"]


@pytest.fixture
def process_env(office_env):
    """The environment of a process that a user starts: the test's database and broker."""
    return {**office_env, "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1"}
