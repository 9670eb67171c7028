"""Fixtures of all tests, and their order."""

from __future__ import annotations

import os
import signal
from itertools import islice

import pytest

from office_tasks import app
from office_tasks.office import Office
from office_tasks.settings import Settings
from tests.support import Board

pytest_plugins = ["pytester", "tests.nodes.plugin", "tests.databases"]

# What takes a minute or more, the longest first.
LONG = (
    "documents/test_walk",
    "replay/test_real_file",
    "canary/test_starting.py::test_a_broker_that_refuses",
    "executing/test_deaths.py::test_a_killed_workers_run",
    "termination/test_machine",
    "canary/test_starting.py::test_a_database_that_refuses",
    "deploy/test_image",
)


def pytest_configure():
    """Let tests interrupt what they start also when this is a job in the background, of which SIGINT is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Begin the first of xdist's shares with the longest, the other shares with the others: none begins late."""
    workers, left, shares = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), len(items), []
    long = sorted((item for item in items if _rank(item) < len(LONG)), key=_rank)
    rest = iter([item for item in items if _rank(item) == len(LONG)])
    for number in range(workers):
        size = left // (workers - number)  # as xdist shares them out
        left -= size
        first = long[:1] if number == 0 and workers > 1 else long[number :: max(workers - 1, 1)]
        shares += [*first, *islice(rest, max(0, size - len(first)))]
    items[:] = [*shares, *rest]


def _rank(item):
    return next((rank for rank, name in enumerate(LONG) if name in item.nodeid), len(LONG))


@pytest.fixture
def board(engine):
    """A small office in the test's own database: workspace `acme`, agents `ana` and `bob`, an auto-starting step."""
    return Board(engine).furnish()


@pytest.fixture
def office(engine, database_url):
    """The app's office, on the test's own database: Celery tasks called as plain functions use it."""
    before = app.__dict__.pop("office", None)
    app.office = Office(Settings(database_url=database_url), engine)
    yield app.office
    del app.office
    if before is not None:
        app.office = before


@pytest.fixture
def worker_app():
    return "office_tasks"


@pytest.fixture
def office_env(office_env, database_url):
    """Workers of a test work on the test's own database."""
    return office_env | {"OFFICE_DATABASE_URL": database_url}


@pytest.fixture
def celery_setup_config(celery_setup_config):
    """The caller's side: an app that does not import us, and sends by name to the queue that admission consumes."""
    return celery_setup_config | {"task_default_queue": "admission"}
