"""Fixtures of the execution tests: one shared database, virtual time, a handler that does what a test says."""

from __future__ import annotations

import uuid

import pytest

from db import claims
from office_tasks.execution.execute import execute_next
from tests.admission.conftest import acme, admission_engine, admission_url  # noqa: F401 - they are fixtures
from tests.admission.rows import store_run
from tests.execution.handlers import PATH, playing
from tests.execution.seen import row_of
from tests.faults.conftest import moved  # noqa: F401 - it is a fixture
from tests.recovery.virtual import VirtualTime
from tests.support import T0


@pytest.fixture
def database_url(admission_url):  # noqa: F811 - the fixture that is imported
    return admission_url


@pytest.fixture
def board(acme):  # noqa: F811 - the fixture that is imported
    return acme


@pytest.fixture
def time():
    """The instant at which everything of the test happens: T0 until it is moved."""
    return VirtualTime()


@pytest.fixture
def virtual(time, make_test_engine):
    """An engine whose present is `time`."""
    return time.rule(make_test_engine())


@pytest.fixture
def queue(board):
    """Return a function that puts a run in line: `queue(task="T1", agent="bob", minutes=3)`."""

    def put(at=T0, *, task=None, payload=None, **more):
        more = {"reason": "manual_resume", **more}
        return store_run(board, at, payload=payload or ({"task_id": task} if task else {}), **more)

    return put


@pytest.fixture
def on_board(board):
    """Return a function that puts a task on the board, driven by `runner`: `on_board("T1", status="done")`."""

    def put(task="T1", runner="ana", status="todo"):
        board.execute(
            "INSERT INTO tasks (id, workspace_id, workflow_id, step_id, title, status, created_at) "
            "VALUES (:id, 'acme', 'flow', 'start', 'a task', :status, :at)",
            id=task, status=status, at=T0,
        )  # fmt: skip
        if runner:
            seat(board, task, runner)
        return task

    return put


def seat(board, task, runner):
    board.execute(
        "INSERT INTO seats (id, task_id, step_id, role, agent_profile_id) "
        "VALUES (gen_random_uuid(), :task, 'start', 'runner', :runner)",
        task=task, runner=runner,
    )  # fmt: skip


@pytest.fixture
def execute(virtual):
    """Return a function that executes the next run, its handler doing `work`; returns what became of it."""

    def run(work=lambda _context: None, engine=virtual):
        with playing(work):
            return execute_next(engine, PATH)

    return run


@pytest.fixture
def claim(virtual):
    """Return a function that claims the next run."""

    def take(engine=virtual):
        with engine.begin() as connection:
            return claims.claim(connection, uuid.uuid4())

    return take


@pytest.fixture
def untouched(board):
    """Return a function that notes a row, and returns one that tells whether it was written since."""

    def note(table, row_id):
        before = row_of(board, table, row_id)
        return lambda: row_of(board, table, row_id) == before

    return note


@pytest.fixture
def forbid(board):
    """Return a function that lets no run become so, until the test ends or the function that it returns is called."""

    def allow():
        board.execute("ALTER TABLE runs DROP CONSTRAINT IF EXISTS forbidden")

    def make(condition):
        board.execute(f"ALTER TABLE runs ADD CONSTRAINT forbidden CHECK (NOT ({condition})) NOT VALID")
        return allow

    yield make
    allow()
