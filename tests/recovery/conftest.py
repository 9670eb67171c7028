"""Fixtures of the recovery tests: an engine at an instant, a call cut off behind its commit."""

from __future__ import annotations

import pytest

from office_tasks.faults import ENVIRONMENT, FaultPointError
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.creation import create_task
from tests.integration.faults import Fault
from tests.support import T0, after


@pytest.fixture
def at(make_test_engine):
    """Return a function that makes an engine for which it is that much after T0: `at(seconds=5)`."""
    return lambda **delta: make_test_engine(session={"office.now": after(**delta).isoformat()})


@pytest.fixture
def cut_off(monkeypatch, tmp_path):
    """Return a function that makes a call and ends it at a fault point, by default right after its commit."""

    def call(work, *args, point="after_commit", **more):
        fault = Fault("raise", tmp_path / point)
        with monkeypatch.context() as patch:
            patch.setenv(ENVIRONMENT, fault.at(point))
            fault.once()
            with pytest.raises(FaultPointError):
                work(*args, **more)

    return call


@pytest.fixture
def leave_owed(board, cut_off):
    """Return a function that assigns a new task and dies before anybody is woken: `leave_owed(1)` owes `m1#1`."""

    def leave(number, agent="ana", instant=None, step="start"):
        task = f"T{number}"
        create_task(board.engine, f"c{number}", "acme", task, task_id=task, step_id=step, instant=T0)
        cut_off(assign_task, board.engine, f"m{number}", task, agent, "", instant or after(seconds=number))
        return f"m{number}#1"

    return leave
