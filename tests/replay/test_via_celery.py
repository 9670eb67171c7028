"""The live path: messages, a worker, and answers read from Postgres (OPS-1.5)."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from office_tasks.devstack import Redis
from office_tasks.devstack.ports import pick
from office_tasks.replay import via_celery
from office_tasks.replay.errors import ReplayError, ReplayStopped
from tests.replay.conftest import SAMPLE, assert_reconciles, count

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch):
    monkeypatch.delenv("OFFICE_BROKER_URL", raising=False)
    monkeypatch.delenv("OFFICE_RESULT_BACKEND", raising=False)


@pytest.fixture
def broker(monkeypatch):
    """A broker that nobody consumes from."""
    with Redis() as redis:
        monkeypatch.setenv("OFFICE_BROKER_URL", redis.url)
        yield redis


def test_every_event_is_accounted_for_by_the_rows_it_left(play, engine):
    summary = play(SAMPLE, via_celery=True)
    assert (summary["created"], summary["assigned"], summary["unassigned"]) == (4, 15, 2)
    assert_reconciles(summary, engine)
    assert play(SAMPLE)["already_applied"] == 21


def test_events_of_one_task_keep_the_order_of_the_file(play, engine):
    play(SAMPLE, via_celery=True)
    in_file = [line.split(",")[3] or None for line in SAMPLE.read_text().splitlines() if ",T-2," in line]
    with engine.connect() as connection:
        query = "SELECT result ->> 'assignee_id' FROM mutations WHERE task_id = 'T-2' ORDER BY generation"
        assert list(connection.execute(text(query)).scalars()) == in_file


def test_what_the_worker_cannot_apply_is_told_and_holds_up_no_other(play, engine, monkeypatch, capsys):
    play(SAMPLE)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM mutations WHERE task_id IN ('T-3', 'T-4') AND kind = 'create_task'"))
        connection.execute(text("UPDATE mutations SET settled_at = NULL, result = NULL WHERE task_id = 'T-1'"))
    monkeypatch.setattr(via_celery, "OVERDUE_SECONDS", 0.5)
    summary = play(SAMPLE, via_celery=True)
    assert (summary["invalid"], summary["already_applied"]) == (2, 19)
    assert "line 18: task_id: there is a task 'T-3' already" in capsys.readouterr().err
    assert count(engine, "mutations WHERE settled_at IS NULL") == 0


def test_a_broker_without_a_worker_is_told(play, broker, engine):
    with pytest.raises(ReplayStopped, match="no worker answers on the broker: start one"):
        play(SAMPLE, via_celery=True)
    assert count(engine, "mutations") == 0


def test_a_broker_that_does_not_answer_is_told(play, monkeypatch):
    monkeypatch.setenv("OFFICE_BROKER_URL", f"redis://127.0.0.1:{pick()}/0")
    with pytest.raises(ReplayError, match="the broker does not answer"):
        play(SAMPLE, via_celery=True)


def test_a_broker_whose_database_is_not_named_is_refused(command, broker):
    done = command(SAMPLE, "--via-celery", OFFICE_BROKER_URL=broker.url)
    assert done.returncode == 2
    assert "name its worker's database too, in OFFICE_DATABASE_URL" in done.stderr
