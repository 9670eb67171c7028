"""The plugin as its users have it, in this process on our server, and in projects of their own."""

from __future__ import annotations

import pytest

from office_tasks.testing import _office_engine, office, office_database_url
from tests.databases import plain
from tests.nodes.engine import ROOT

__all__ = ["_office_engine", "office", "office_database_url"]


@pytest.fixture(scope="session")
def office_server_url(server_url):
    return plain(server_url)


@pytest.fixture
def studio(office):
    """Workspace `studio`, agents `ada` and `ben`, and a task `door` that nobody has."""
    from office_tasks import create_task

    office.workspace("studio", workflow_id="desk")
    for agent in ("ada", "ben"):
        office.agent("studio", agent)
    create_task("studio", "Paint the door", task_id="door", workflow_id="desk")
    return office


@pytest.fixture
def project(pytester, monkeypatch, office_server_url):
    """A project of somebody else's: `project(test="…")` runs its tests in a process of their own."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OFFICE_TEST_DATABASE_URL", office_server_url)
    pytester.makeconftest('pytest_plugins = ["office_tasks.testing"]')

    def run(*options, test=None):
        if test is not None:
            pytester.makepyfile(test_theirs=test)
        return pytester.runpytest_subprocess("-W", "error", "-p", "no:cacheprovider", *options, timeout=200)

    return run
