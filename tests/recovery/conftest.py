"""Fixtures of the recovery tests: an engine at an instant, a call cut off behind its commit."""

from __future__ import annotations

import pytest

from office_tasks.faults import ENVIRONMENT, FaultPointError
from office_tasks.ids import new_id
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.creation import create_task
from recovery.sweep import sweep_once
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


@pytest.fixture
def tick(at):
    """Return a function that runs one sweep, that much after T0: `tick(minutes=1)`."""
    engines = {}

    def run(**delta):
        key = tuple(delta.items())
        engines[key] = engines.get(key) or at(**delta)
        return sweep_once(engines[key], str(new_id()))

    return run


@pytest.fixture
def unstarted(board):
    """Return a function that puts a task on the board, assigned to `agent` and never started."""

    def make(task, agent="ana", *, created=T0, workspace="acme", step="start", **columns):
        columns = {"status": "todo", "workflow_id": "flow", "assignment_generation": 1, **columns}
        names = ", ".join(columns)
        board.execute(
            f"INSERT INTO tasks (id, workspace_id, step_id, title, created_at, {names}) "
            f"VALUES (:id, :workspace, :step, :id, :created, {', '.join(':' + name for name in columns)})",
            id=task, workspace=workspace, step=step, created=created, **columns,
        )  # fmt: skip
        if agent:
            board.execute(
                "INSERT INTO seats (id, task_id, step_id, role, agent_profile_id) "
                "VALUES (gen_random_uuid(), :task, :step, 'runner', :agent)",
                task=task, step=step, agent=agent,
            )  # fmt: skip
        return task

    return make
