"""Fixtures of the hand-off tests: those of the recovery tests, and those of the tests with real workers."""

from __future__ import annotations

import os
import sys

import pytest

from tests.integration.conftest import arm, caller, worker
from tests.nodes.engine import ROOT
from tests.nodes.waiting import until
from tests.nodes.worker import inherited
from tests.recovery.conftest import at, cut_off, leave_owed

__all__ = ["arm", "at", "beat", "caller", "cut_off", "leave_owed", "process_env", "worker"]


@pytest.fixture
def process_env(office_env):
    """The environment of a process that a user starts: the test's database and broker."""
    return {**office_env, "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def beat(node_engine, office_env, tmp_path):
    """A real beat with the shipped schedule; its first tick has been sent."""
    words = ["-m", "celery", "-A", "office_tasks", "beat", f"--schedule={tmp_path / 'schedule'}", "--pidfile="]
    handle = node_engine.run(
        [sys.executable, *words, "--loglevel=INFO"], name="beat", env={**inherited(), **office_env}
    )
    until(lambda: b"Sending due task relay-owed" in handle.logs(), 30, "the first tick")
    yield handle
    node_engine.remove(handle)
