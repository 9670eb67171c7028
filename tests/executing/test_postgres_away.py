"""Postgres restarted in mid-handler: what the handler did is written when it is back, and not done twice (REC-2.8)."""

from __future__ import annotations

import pytest

from tests.db.conftest import own_board, own_server
from tests.executing.desk import Desk
from tests.integration.caller import events
from tests.nodes.verbs import wait_for_log

__all__ = ["own_board", "own_server"]

pytestmark = pytest.mark.office_worker(concurrency=1, queues="execution")


@pytest.fixture
def database_url(own_server, own_board):
    """Workers of these tests work on the module's own server."""
    return own_server.url


@pytest.fixture
def desk(own_board, celery_setup_app, directory):
    return Desk(own_board, celery_setup_app, directory)


def finished_once(desk, run_id):
    row = desk.until_status(run_id, "finished")
    assert (row["attempt"], row["result"], row["error"]) == (1, {"attempt": 1}, None)
    assert desk.attempts(run_id) == [1]


def test_restarted_while_the_handler_runs(worker, own_server, desk):
    """REC-2.8: the lease is renewed and the ending written over new connections."""
    run_id = desk.begin("hold")
    own_server.restart()
    desk.open_gate()
    finished_once(desk, run_id)


def test_away_when_the_handler_ends(worker, own_server, desk):
    """REC-2.8: killed, and away when there is a result to write: it is written when it is back; so is the next."""
    run_id = desk.begin("hold")
    own_server.kill()
    desk.open_gate()
    wait_for_log(worker, "run_end_not_written")
    own_server.start()
    finished_once(desk, run_id)
    assert events(worker.logs(), "run_lost") == []
    healthy = desk.start("work")
    desk.until_status(healthy, "finished")
