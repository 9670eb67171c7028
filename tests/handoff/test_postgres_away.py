"""Postgres restarted between the commit and what follows it: nothing owed is lost, nothing is done twice (PRO-6.2)."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from office_tasks import retries
from office_tasks.in_session import assign
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.creation import create_task
from office_tasks.tasks import settle_mutation
from recovery.relay import relay_once
from tests.db.conftest import own_board, own_server
from tests.nodes.waiting import until
from tests.recovery.conftest import cut_off
from tests.support import T0

__all__ = ["cut_off", "own_board", "own_server"]


@pytest.fixture
def t1(own_board):
    create_task(own_board.engine, "c1", "acme", "x", task_id="T1", step_id="start", instant=T0)
    return own_board


def settled_once(board):
    until(lambda: relay_once(board.engine, None)["settled"] == 1, 20, "the relay settles it")
    assert relay_once(board.engine, None)["settled"] == 0
    assert [wake["outcome"] for wake in board.wakes()] == ["queued"]
    assert board.count("runs") == 1
    assert board.rows("SELECT assignment_generation AS n FROM tasks") == [{"n": 1}]


def test_postgres_is_killed_after_the_commit(own_server, t1, cut_off):
    """PRO-6.2, C33: the relay fails while it is away, with an error that passes, and admits once when it is back."""
    cut_off(assign_task, t1.engine, "m1", "T1", "ana", "", T0)
    own_server.kill()
    with pytest.raises(DBAPIError) as caught:
        relay_once(t1.engine, None)
    assert retries.kind_of(caught.value) is retries.CONNECTION_LOST
    own_server.start()
    settled_once(t1)
    assert assign_task(t1.engine, "m1", "T1", "ana")["generation"] == 1
    assert t1.count("runs") == 1


def test_postgres_is_killed_before_the_commit(own_server, t1, cut_off):
    """PRO-6.2: what had not committed is gone whole, and the same message does it all, once."""
    cut_off(assign_task, t1.engine, "m1", "T1", "ana", "", T0, point="before_commit")
    own_server.kill()
    own_server.start()
    assert (t1.count("wakes"), t1.count("mutations")) == (0, 1)
    assert assign_task(t1.engine, "m1", "T1", "ana", "", T0)["wakes"][0]["outcome"] == "queued"
    assert t1.count("runs") == 1


def test_postgres_is_restarted_under_an_open_session(own_server, t1, monkeypatch):
    """PRO-6.3: the caller's commit fails, so nothing follows; the session's next one does."""
    sent = []
    monkeypatch.setattr(settle_mutation, "apply_async", lambda args, **_: sent.extend(args))
    with Session(t1.engine) as session:
        assign(session, "T1", "ana")
        own_server.restart()
        with pytest.raises(DBAPIError):
            session.commit()
        session.rollback()
        assert (t1.count("wakes"), sent) == (0, [])
        mutation_id = assign(session, "T1", "ana")
        session.commit()
    assert sent == [mutation_id]
    settled_once(t1)
