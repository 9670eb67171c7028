"""A worker that is forked is the process that its command would start, but for what it need not import."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.nodes.engine import ROOT, ProcEngine
from tests.nodes.worker import inherited

# `timeit` does what it is told, and stands in the standard library.
TELL = """
import os, signal, sys
print(sorted(os.environ.items()), os.getcwd(), sys.path, sys.argv[1:], os.getsid(0) == os.getpid() == os.getpgid(0))
print(sys.stdin.read() == "", [signal.getsignal(one) for one in (2, 15)], sys.modules["__main__"].__spec__.name)
print(not [name for name in sys.modules if name.startswith(("office_tasks", "db", "recovery"))])
print("celery" in sys.modules)
"""


@pytest.fixture
def engine(tmp_path):
    engine = ProcEngine(tmp_path)
    yield engine
    engine.close()


def command(statement):
    return [sys.executable, "-m", "timeit", "-n1", "-r1", statement]


def test_it_differs_in_nothing_else(engine):
    told = []
    for nursery in (None, engine.nursery(inherited())):
        handle = engine.run(command(f"{TELL}\nos._exit(3)"), name="one", env=inherited(), nursery=nursery)
        assert handle.wait(timeout=60) == {"StatusCode": 3}
        told.append(handle.logs().decode().splitlines())
    started, forked = told
    assert started[:3] == forked[:3]
    assert started[2] == "True"
    assert (started[3:], forked[3:]) == (["False"], ["True"])


def test_it_ends_as_a_node_ends(engine):
    words = command("import sys; sys.stdout.write('up'); import signal; signal.pause()")
    handle = engine.run(words, name="one", env=inherited(), nursery=engine.nursery(inherited()))
    with pytest.raises(subprocess.TimeoutExpired):
        handle.wait(timeout=0.1)
    handle.restart(timeout=30)
    assert (handle.status, handle.exit_code) == ("running", None)
    handle.kill("SIGKILL")
    assert (handle.status, handle.exit_code, handle.pids()) == ("exited", 137, [])


@pytest.mark.parametrize("name", ["REMAP_SIGTERM", "PYTHONPATH", "PROMETHEUS_MULTIPROC_DIR"])
def test_what_is_read_at_an_import_is_not_forked(engine, name):
    """Those modules are there already, and have read another value."""
    nursery, env = engine.nursery(inherited()), inherited()
    assert nursery.takes(command(TELL), {**env, "OFFICE_DATABASE_URL": "another"}, ROOT)
    assert not nursery.takes(command(TELL), {**env, name: "another"}, ROOT)
