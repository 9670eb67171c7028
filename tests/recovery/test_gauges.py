"""The gauges: what Postgres says at the moment of the scrape, in one round trip, and never an error of the scrape."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import text
from structlog.testing import capture_logs

from db.engine import autocommit, make_engine
from office_tasks import admin
from office_tasks.devstack.ports import pick
from office_tasks.gauges import OfficeGauges
from tests.admission.rows import store_run
from tests.db.plans import custom, statements
from tests.recovery.test_jobs import JOBS
from tests.support import T0, after

NOBODY = {
    "office_scrape_ok": 1,
    "office_oldest_owed_seconds": 0,
    "office_owed_wakes": 0,
    "office_oldest_queued_seconds": 0,
}
NO_RUNS = {'office_runs{status="claimed"}': 0, 'office_runs{status="queued"}': 0}


def scrape(engine):
    """Return what Prometheus would read: `{'office_runs{status="queued"}': 1.0}`."""
    registry = CollectorRegistry()
    registry.register(OfficeGauges(engine))
    found = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        assert family.type == "gauge"
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def analyze(board):
    with autocommit(board.engine) as connection:
        connection.execute(text("ANALYZE runs"))


def test_an_empty_office(board, at):
    """REC-3.5: nothing owed and nothing waiting is 0; a job that never succeeded has no instant to show."""
    assert scrape(at()) == {**NOBODY, **NO_RUNS}


@pytest.mark.parametrize("job", JOBS)
def test_when_each_job_last_succeeded(board, at, job):
    """REC-3.5: as Unix time, under the name of the Celery task."""
    board.execute("INSERT INTO recovery_jobs VALUES (:job, :at, '{}')", job=job, at=after(seconds=1))
    shown = scrape(at(minutes=5))
    assert shown[f'office_last_success_timestamp{{job="{job}"}}'] == after(seconds=1).timestamp()


def test_the_oldest_owed_wake(board, at, leave_owed):
    """REC-3.5: since it was requested; one that a paused workspace owes on purpose raises no alarm."""
    admin.create_workspace(board.engine, "quiet", workflow_id="flow")
    admin.create_agent(board.engine, "quiet", "quinn")
    for number in (3, 1, 2):
        leave_owed(number)
    board.execute("UPDATE wakes SET agent_profile_id = 'quinn' WHERE id = 'm1#1'")
    assert scrape(at(seconds=61))["office_oldest_owed_seconds"] == 60
    board.execute("INSERT INTO pauses (workspace_id) VALUES ('quiet')")
    assert scrape(at(seconds=61))["office_oldest_owed_seconds"] == 59
    assert scrape(at(seconds=61))["office_owed_wakes"] == 3
    board.execute("UPDATE wakes SET state = 'superseded', decided_at = now() WHERE agent_profile_id = 'ana'")
    assert scrape(at(seconds=61))["office_oldest_owed_seconds"] == 0
    assert scrape(at(seconds=61))["office_owed_wakes"] == 1


def test_the_oldest_queued_run(board, at):
    """REC-3.5: since it was requested, or since its retry was due; a retry that is still to come does not wait."""
    assert scrape(at())["office_oldest_queued_seconds"] == 0
    store_run(board, after(hours=-2), retry_at=after(seconds=100))
    store_run(board, after(seconds=5), agent="bob")
    assert scrape(at(seconds=65))["office_oldest_queued_seconds"] == 60
    assert scrape(at(seconds=200))["office_oldest_queued_seconds"] == 195
    board.execute("DELETE FROM runs WHERE agent_profile_id = 'bob'")
    assert scrape(at(seconds=65))["office_oldest_queued_seconds"] == 0
    assert scrape(at(seconds=165))["office_oldest_queued_seconds"] == 65


@pytest.mark.parametrize(
    "hold",
    [
        "UPDATE agents SET status = 'paused'",
        "INSERT INTO pauses (workspace_id) VALUES ('acme')",
        "UPDATE workspaces SET is_replay = true",
        "DELETE FROM agents",
        "UPDATE runs SET status = 'cancelled', finished_at = now()",
    ],
)
def test_a_run_that_nobody_may_claim_does_not_wait(board, at, hold):
    """REC-3.5: a pause, a replay or an agent that is gone is no backlog."""
    store_run(board, T0)
    assert scrape(at(minutes=1))["office_oldest_queued_seconds"] == 60
    board.execute(hold)
    assert scrape(at(minutes=1))["office_oldest_queued_seconds"] == 0


def test_a_line_that_does_not_move(board, at):
    """REC-3.5: behind a retry that has only just come due, an agent's next run has waited for an hour."""
    store_run(board, after(hours=-3), retry_at=after(seconds=59))
    store_run(board, after(hours=-1))
    assert scrape(at(minutes=1))["office_oldest_queued_seconds"] == 3660


def test_live_runs_are_counted_and_ended_ones_estimated(board, at):
    """REC-3.5: queued and claimed at once, to the run; the others once the table was analyzed."""
    admin.create_workspace(board.engine, "replay-1", workflow_id="replay-1", is_replay=True)
    admin.create_agent(board.engine, "replay-1", "robo")
    for status, agent, times in (
        ("queued", "ana", 3), ("queued", "gone", 1), ("queued", "robo", 1), ("claimed", "bob", 2),
        ("finished", "ana", 12), ("failed", "ana", 4),
    ):  # fmt: skip
        for _ in range(times):
            store_run(board, T0, agent=agent, status=status)
    live = {'office_runs{status="claimed"}': 2, 'office_runs{status="queued"}': 5}
    assert runs(scrape(at())) == live
    analyze(board)
    ended = {'office_runs{status="finished"}': 12, 'office_runs{status="failed"}': 4}
    assert runs(scrape(at())) == {**live, **ended, 'office_runs{status="cancelled"}': 0}


def runs(shown):
    return {name: value for name, value in shown.items() if name.startswith("office_runs")}


def test_a_scrape_is_one_round_trip_and_registering_is_none(board, at):
    """REC-3.5: one statement, by itself; making and registering the collector asks nothing."""
    engine = at()
    with statements(engine) as sent:
        registry = CollectorRegistry(auto_describe=True)
        registry.register(OfficeGauges(engine))
        assert sent == []
        generate_latest(registry)
    assert len(sent) == 1


def test_a_database_that_does_not_answer(board):
    """REC-3.5: a scrape never raises: it says that it knows nothing, and shows nothing stale."""
    away = make_engine(f"postgresql+psycopg://office:secret@127.0.0.1:{pick()}/office")
    with capture_logs() as logs:
        assert scrape(away) == {"office_scrape_ok": 0}
    assert [line["event"] for line in logs] == ["scrape_failed"]
    assert "secret" not in str(logs)


def test_a_database_that_was_never_migrated(board):
    """REC-3.5: the same, and the next scrape after it was mended is a good one."""
    board.execute("ALTER TABLE recovery_jobs RENAME TO elsewhere")
    assert scrape(board.engine) == {"office_scrape_ok": 0}
    board.execute("ALTER TABLE elsewhere RENAME TO recovery_jobs")
    assert scrape(board.engine)["office_scrape_ok"] == 1


def test_history_costs_a_scrape_nothing(board, at):
    """REC-3.5, R08: beside 100,000 ended runs it reads by the partial indexes of the live ones, and few blocks."""
    board.execute(
        "INSERT INTO runs (id, agent_profile_id, reason, payload, status, requested_at, finished_at) "
        "SELECT gen_random_uuid(), 'ana', 'r', '{}', 'finished', :at, :at FROM generate_series(1, 100000)", at=T0,
    )  # fmt: skip
    for status in ("queued", "claimed"):
        store_run(board, T0, status=status)
    analyze(board)
    engine = at(minutes=1)
    with statements(engine) as sent:
        assert scrape(engine)['office_runs{status="finished"}'] == pytest.approx(100_000, rel=0.01)
    plan = custom(engine, *sent[0])
    assert {"ix_wakes_owed", "ix_runs_waiting"} <= plan.indexes
    assert plan.scanned & {"runs", "wakes", "agents", "workspaces", "pauses"} == set()
    assert not plan.indexes & {"pk_runs", "ix_runs_finished"}
    assert plan.blocks < 200
