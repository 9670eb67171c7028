"""Fixtures of all tests."""

from __future__ import annotations

import pytest

from office_tasks import app
from office_tasks.office import Office
from office_tasks.settings import Settings
from tests.support import Board

pytest_plugins = ["pytester", "tests.nodes.plugin", "tests.databases"]


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
