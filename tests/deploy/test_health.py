"""The health checks of docker-compose.yml, as they stand there, against real processes: well, frozen and dead."""

from __future__ import annotations

import subprocess

import pytest

from office_tasks.devstack.ports import pick
from tests.deploy.services import service
from tests.nodes.waiting import until


@pytest.fixture
def start(node_engine, deployed_env, tmp_path):
    """Return a function that starts a service with its own command: `start("worker")`."""
    started = []

    def run(name, **env):
        about = service(name)
        # Of all that the services write, beat's schedule alone is at a place that two tests would share.
        command = [word.replace("/tmp", str(tmp_path)) for word in about.command]
        env = {**deployed_env, **about.environment, **env}
        started.append(node_engine.run(command, name=name, env=env))
        return started[-1]

    yield run
    for handle in started:
        node_engine.remove(handle)


@pytest.fixture
def checked(deployed_env):
    """Return a function that runs a service's check and returns its exit code: `checked("worker")`."""

    def run(name, port="", **env):
        words = [word.replace("5555", port) if port else word for word in service(name).check]
        done = subprocess.run(words, env={**deployed_env, **env}, capture_output=True, timeout=30, check=False)
        return done.returncode

    return run


def test_a_worker(start, checked):
    """OPS-3: it answers through the broker while its loop turns, and not when it hangs or is gone."""
    assert service("executor").check == service("worker").check
    handle = start("worker")
    until(lambda: checked("worker") == 0, 60, "it is well")
    handle.pause()
    assert checked("worker") != 0
    handle.unpause()
    until(lambda: checked("worker") == 0, 60, "it is well again")
    handle.kill()
    assert checked("worker") != 0


def purged(board):
    return board.rows("SELECT FROM recovery_jobs WHERE job = 'recovery.purge_history'")


@pytest.mark.timeout(300)
def test_beat(board, start, checked):
    """OPS-3, C37: what beat had done lately stands in Postgres: a beat that is up and hangs fails the check.

    Its first purge is not an hour away, for which `office doctor` would warn of it (REC-3.2).
    """
    assert checked("beat") != 0, "nothing was ever done"
    start("worker")
    handle = start("beat")
    until(lambda: checked("beat") == 0, 60, "beat is well")
    until(lambda: purged(board), 30, "the purge that a new beat sends as it starts")
    handle.pause()
    until(lambda: checked("beat") != 0, 90, "it shows that beat hangs")
    handle.unpause()
    until(lambda: checked("beat") == 0, 60, "beat is well again")


def test_flower(start, checked):
    """OPS-3: Flower answers its own health check, and not when it hangs or is gone."""
    port = str(pick())
    assert service("flower").check != [word.replace("5555", port) for word in service("flower").check]
    handle = start("flower", FLOWER_USER="a", FLOWER_BASIC_AUTH="a:long-password", FLOWER_PORT=port)
    until(lambda: checked("flower", port) == 0, 60, "it is well")
    handle.pause()
    assert checked("flower", port) != 0
    handle.unpause()
    until(lambda: checked("flower", port) == 0, 60, "it is well again")
    handle.kill()
    assert checked("flower", port) != 0


def test_postgres(server_url, checked, programs):
    """OPS-3: pg_isready, asked as compose asks it, of a server that is there and of one that is not."""
    well = {"PGPORT": str(server_url.port)}
    assert checked("postgres", **well) == 0
    assert checked("postgres", PGPORT=str(pick())) != 0
