"""Projects of other people, each in a directory and a process of its own."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from office_tasks.devstack import privilege
from office_tasks.devstack.privilege import reachable
from tests.nodes.engine import ROOT

SHOP = ROOT / "examples" / "shop"
# Some start a server and two more processes, each of which imports all of Celery.
pytestmark = pytest.mark.timeout(240)

FAILING = """
    from office_tasks import queue_run
    from office_tasks.testing import assert_admitted

    def test_it(office):
        office.workspace("studio")
        office.agent("studio", "ada", status="paused")
        queue_run.delay("ada", "stock_check", {"order": "o-1"})
        assert_admitted(office, agent="ada")
"""


@pytest.fixture
def shop(pytester, project):
    """The example, as somebody would have copied it."""
    for path in SHOP.glob("*.*"):
        shutil.copy(path, pytester.path)
    return project


@pytest.fixture
def embedded(monkeypatch):
    """No server is named."""
    monkeypatch.delenv("OFFICE_TEST_DATABASE_URL", raising=False)


def servers(port):
    """Return the processes that were started to listen at `port`."""
    return [one for one in psutil.process_iter(["cmdline"]) if port in (one.info["cmdline"] or ())]


def test_in_two_processes(shop):
    """Each has a database of its own."""
    shop("-n", "2", "--dist", "each").assert_outcomes(passed=12)


def test_a_failure_is_legible(project):
    done = project(test=FAILING)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([
        '>       assert_admitted(office, agent="ada")',
        "E       AssertionError: expected 1 queued wake (agent='ada'), found 0",
        "E       The wakes of this office, at 2026-03-02 09:00:00:",
        "E         agent_not_wakeable: 09:00:00 stock_check of ada, *",
        "E             Gate 1 (agent status) refused it (agent_not_wakeable): agent 'ada' is paused.",
        'E             payload: {"order": "o-1"}',
    ])  # fmt: skip
    assert "assertions.py" not in done.stdout.str(), "the trace ends in the test"


def test_no_server_outlives_the_tests(project, embedded, pytester):
    """8-engineering 22: its own PostgreSQL ends with the tests, failed ones too."""
    done = project("-s", test=f"{FAILING}\n    def test_port(office_server_url):\n        print(office_server_url)\n")
    done.assert_outcomes(failed=1, passed=1)
    (port,) = re.findall(r"@127\.0\.0\.1:(\d+)/", done.stdout.str())
    assert servers(port) == []


def test_a_server_of_the_projects_own(project, monkeypatch, pytester, office_server_url):
    monkeypatch.setenv("OFFICE_TEST_DATABASE_URL", "postgresql://127.0.0.1:1/nothing")
    pytester.makeconftest(f"""
        import pytest
        pytest_plugins = ["office_tasks.testing"]

        @pytest.fixture(scope="session")
        def office_server_url():
            return {office_server_url!r}
    """)
    project(test="def test_it(office):\n    assert office.wakes == []\n").assert_outcomes(passed=1)


@pytest.mark.parametrize("missing", ["psutil", "programs"])
def test_no_server_is_installed(project, embedded, pytester, missing):
    """It is an error, not a skip, and one sentence: a test that cannot run must not look like one that passed."""
    pytester.makeconftest(f"""
        import sys
        from office_tasks.devstack import binaries
        if {missing!r} == "psutil":
            for name in [*sys.modules]:
                if name.startswith("office_tasks.devstack"):
                    del sys.modules[name]
            sys.modules["psutil"] = None
        else:
            binaries._postgres_candidates = lambda: iter(())
        pytest_plugins = ["office_tasks.testing"]
    """)
    done = project(test="def test_it(office):\n    pass\n")
    done.assert_outcomes(errors=1)
    said = {"psutil": "the embedded PostgreSQL needs psutil: ", "programs": "no PostgreSQL server programs*"}
    done.stdout.fnmatch_lines([f"{said[missing]}install *; or name a server on which * OFFICE_TEST_DATABASE_URL"])
    assert "During handling" not in done.stdout.str()
    assert "Traceback" not in done.stdout.str()


def test_imported_before_it_is_registered(project, pytester):
    """Under -W error; and importing opens nothing, so no server is looked for."""
    pytester.makeconftest("""
        from office_tasks.testing import TrialOffice
        pytest_plugins = ["office_tasks.testing"]
    """)
    project(test="def test_it():\n    pass\n").assert_outcomes(passed=1)


def test_who_does_not_name_it_has_nothing_of_it(project, pytester):
    """Installing it changes nobody's tests."""
    pytester.makeconftest("")
    done = project("--fixtures", test="def test_it():\n    pass\n")
    assert "office_server_url" not in done.stdout.str()


@pytest.mark.skipif(
    os.geteuid() != 0 or not reachable(Path(sys.executable).resolve()),
    reason="whoever is not root has shown it by the other tests; and nobody cannot run an interpreter of root's own",
)
def test_root_is_not_needed(embedded):
    """The example with an embedded server, by an account that owns nothing else."""
    place = Path(tempfile.mkdtemp(prefix="office-shop-", dir="/tmp"))
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", f"--basetemp={place}/tmp"]
    try:
        for path in SHOP.glob("*.*"):
            shutil.copy(path, place)
        privilege.give(place, privilege.USER)
        done = subprocess.run(
            command, cwd=place, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            user=privilege.USER, group=pwd.getpwnam(privilege.USER).pw_gid, extra_groups=[],
            capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
    finally:
        shutil.rmtree(place)
    assert (done.returncode, "6 passed" in done.stdout) == (0, True), done.stdout + done.stderr
