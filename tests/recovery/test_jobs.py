"""What every recovery job says of itself: a counter, and in Postgres when it last succeeded and what it did."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import text

from office_tasks import app
from office_tasks.base import OfficeTask
from office_tasks.errors import DatabaseError
from recovery.job import RecoveryJob
from recovery.schedule import SCHEDULE
from recovery.tasks import purge_history, recover_unstarted_tasks, relay_owed
from tests.admission.telling import counted, listening
from tests.faults.waits import holding, in_background, until_blocked
from tests.support import T0, after

JOBS = sorted({entry["task"] for entry in SCHEDULE.values()})


def tick(job, result):
    return counted("office_recovery_total", job=job, result=result)


def recorded(board):
    return {row["job"]: row for row in board.rows("SELECT * FROM recovery_jobs")}


@pytest.fixture
def quiet(office, monkeypatch):
    """The office without a stream: no Redis is asked."""
    monkeypatch.setitem(office.__dict__, "stream", None)
    return office


@pytest.fixture
def clock(office, at, monkeypatch):
    """Return a function that puts the office's clock that much after T0: `clock(minutes=1)`."""
    return lambda **delta: monkeypatch.setitem(office.__dict__, "engine", at(**delta))


@pytest.mark.parametrize("name", JOBS)
def test_every_job_says_what_it_did(board, quiet, clock, name):
    """REC-3.4, REC-3.5: the result is a summary; it is counted, and recorded under the job's name and the instant."""
    app.loader.import_default_modules()
    clock(hours=1)
    job = app.tasks[name]
    assert isinstance(job, RecoveryJob)
    with listening() as told:
        summary = job()
    assert told.moved == {tick(name, "done"): 1}
    assert recorded(board) == {name: {"job": name, "succeeded_at": after(hours=1), "result": summary}}
    assert json.loads(json.dumps(summary)) == summary


def test_the_latest_success_stands(board, quiet, clock):
    """REC-3.5: one row a job; a tick that was held up does not undo what a later one said."""
    for minutes, stands in ((1, 1), (3, 3), (2, 3)):
        clock(minutes=minutes)
        purge_history()
        assert recorded(board)[purge_history.name]["succeeded_at"] == after(minutes=stands)
    assert board.count("recovery_jobs") == 1


def test_a_job_that_raises_is_counted_and_not_recorded(board, quiet):
    """REC-3.5: the last success keeps its instant, which is what tells how long there has been none."""
    board.execute("INSERT INTO recovery_jobs VALUES ('recovery.purge_history', :at, '{}')", at=T0)
    board.execute("ALTER TABLE deliveries RENAME TO elsewhere")
    with listening() as told, pytest.raises(DatabaseError):
        purge_history()
    assert told.moved == {tick("recovery.purge_history", "failed"): 1}
    assert recorded(board)["recovery.purge_history"]["succeeded_at"] == T0


def test_a_sweep_that_found_another_at_work_is_no_success(board, quiet):
    """REC-1.8, REC-3.5: it is counted as skipped; whoever is at work records its own."""
    with board.engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('office.recovery'))"))
        with listening() as told:
            assert recover_unstarted_tasks()["lock"] == "taken"
    assert told.moved == {tick("recovery.recover_unstarted_tasks", "skipped"): 1}
    assert recorded(board) == {}


def test_recording_fails_no_job(board, quiet):
    """REC-3.5: what was done is done; that it could not be recorded is a warning."""
    board.execute("DROP TABLE recovery_jobs")
    with listening() as told:
        assert purge_history()["more"] is False
    assert told.moved == {tick("recovery.purge_history", "done"): 1}
    [warning] = told.events("recovery_not_recorded")
    assert (warning["job"], warning["error"][:5]) == ("recovery.purge_history", "42P01")


def test_recording_waits_for_nobody_for_long(board, quiet):
    """REC-3.5, R11: a row that somebody holds is given up after the engine's lock time-out."""
    board.execute("INSERT INTO recovery_jobs VALUES ('recovery.relay_owed', :at, '{}')", at=T0)
    with in_background() as go, holding(board.engine, "SELECT 1 FROM recovery_jobs FOR UPDATE"):
        with listening() as told:
            call = go(relay_owed)
            until_blocked(board.engine)
            assert call.result(20)["decided"] == 0
        assert told.events("recovery_not_recorded")[0]["error"].startswith("55P03")


def test_only_recovery_jobs_are_recorded():
    """REC-3.5: each task that beat sends is a recovery job, and no other task is one."""
    app.loader.import_default_modules()
    ours = {name for name, task in app.tasks.items() if isinstance(task, OfficeTask)}
    assert {name for name in ours if isinstance(app.tasks[name], RecoveryJob)} == set(JOBS)


@pytest.mark.office_worker(concurrency=1, queues="recovery")
def test_a_worker_records_what_beat_sent(board, celery_setup, celery_setup_app):
    """REC-3.4, REC-3.5: through a message and a child process too; the result is the summary that is recorded."""
    answers = {name: celery_setup_app.send_task(name, queue="recovery") for name in JOBS}
    summaries = {name: answer.get(timeout=45) for name, answer in answers.items()}
    assert {name: row["result"] for name, row in recorded(board).items()} == summaries
