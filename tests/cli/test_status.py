"""OPS-1.4: `office status` tells what is, from Postgres and from the broker."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from office_tasks import admin
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.creation import create_task
from office_tasks.producers.participants import add_participant, remove_participant
from office_tasks.producers.pauses import pause_workspace
from tests.admission.rows import store_agent_assignments, store_run
from tests.cli.moments import ago, begin, coming, utc
from tests.cli.said import as_json
from tests.cli.test_session_show import open_session
from tests.cli.test_why import claim, end
from tests.recovery.conftest import cut_off  # noqa: F401 - a fixture
from tests.recovery.test_jobs import JOBS

ALL_QUEUES = ["admission", "execution", "recovery"]


@pytest.fixture(autouse=True)
def quiet():
    begin()
    with capture_logs():
        yield


@pytest.fixture
def status(run, board, broker_away):
    """Return the state of the office as JSON."""

    return lambda: as_json(run, "status")


@pytest.fixture
def told(run, board, broker_away):
    """Return the state of the office as people read it: lines, by what they begin with."""

    return lambda: [" ".join(line.split()) for line in run("status").lines()]


def test_an_empty_office(told, broker_away):
    """Exit code 0, with the broker away and nothing ever recovered: both are told, without a trace."""
    lines = told()
    assert lines[0].startswith(f"broker {broker_away} does not answer: ")
    assert "Connection refused" in lines[0]
    assert lines[1:5] == ["runs 0 queued", "0 claimed", "ended, about: none", "claims none is stale"]
    assert "owed 0 wakes" in lines
    assert [line.removeprefix("recovery ") for line in lines if "never" in line] == [
        f"{job}: never succeeded" for job in JOBS
    ]
    assert lines[-4:] == [
        "last hour wakes: none", "sessions kept: none", "paused workspaces: none", "agents: none",
    ]  # fmt: skip


def test_runs_by_reason_the_oldest_and_stale_claims(board, status, told):
    store_run(board, ago(seconds=90))
    store_run(board, ago(minutes=10), retry_at=coming(hours=1))
    store_run(board, ago(seconds=30), agent="bob", reason="nightly")
    good, bad = (store_run(board, ago(minutes=3), reason=reason) for reason in ("task_comment", "nightly"))
    claim(board, good, lease=900)
    claim(board, bad, lease=-30)
    found = status()
    assert found["queue"]["live"] == [
        {"status": "queued", "reason": "task_assigned", "number": 2},
        {"status": "queued", "reason": "nightly", "number": 1},
        {"status": "claimed", "reason": "nightly", "number": 1},
        {"status": "claimed", "reason": "task_comment", "number": 1},
    ]
    queue = found["queue"]
    assert (queue["queued"], queue["claimed"], queue["waiting_for_retry"]) == (3, 2, 1)
    assert 90 <= queue["oldest_queued_seconds"] < 600
    assert found["claims"]["stale"] == 1
    assert [claim["id"] for claim in found["claims"]["stale_claims"]] == [str(bad)]
    lines = told()
    assert "claims 1 stale, which the rescue takes over" in lines
    assert f"{bad} of ana: its lease ran out at {utc(ago(seconds=30))}" in lines


def test_what_is_owed_and_what_keeps_failing_by_name(board, status, told, cut_off):  # noqa: F811 - the fixture
    """REC-3.1, ADM-10.5: wakes over 5 attempts, and messages that were given up, by name."""
    for number in (1, 2, 3):
        create_task(board.engine, f"c{number}", "acme", "Paint", task_id=f"T{number}", step_id="start")
        cut_off(assign_task, board.engine, f"m{number}", f"T{number}", "ana", "", ago(minutes=number))
    board.execute("UPDATE wakes SET attempts = 6, last_error = '40P01: deadlock' WHERE id = 'm2#1'")
    board.execute("UPDATE wakes SET attempts = 5 WHERE id = 'm3#1'")
    board.execute(
        "INSERT INTO deliveries (id, task_name, deliveries, poisoned_at) VALUES ('d1', 'office.queue_run', 6, :at)",
        at=ago(minutes=1),
    )
    owed = status()["owed"]
    assert (owed["wakes"], owed["held_by_pauses"]) == (3, 0)
    assert 180 <= owed["oldest_seconds"] < 600
    assert [(wake["id"], wake["attempts"]) for wake in owed["struggling"]] == [("m2#1", 6)]
    lines = told()
    assert "m2#1 of ana failed 6 times: 40P01: deadlock" in lines
    assert f"message d1 of office.queue_run was given up at {utc(ago(minutes=1))}" in lines
    pause_workspace(board.engine, "p1", "acme")
    assert (status()["owed"]["held_by_pauses"], status()["owed"]["oldest_seconds"]) == (3, 0)


def test_what_each_job_did_last_and_which_is_late(board, status, told):
    """REC-3.5, C37: a job that has not succeeded for three periods is late; one with nothing to do is not."""
    for job in JOBS:
        board.execute(
            "INSERT INTO recovery_jobs VALUES (:job, :at, CAST(:result AS jsonb))",
            job=job,
            at=ago(minutes=5) if job == "recovery.relay_owed" else ago(seconds=-60),
            result='{"settled": 2, "skipped": {"blocked": 1}}',
        )
    assert {job["job"] for job in status()["jobs"] if job["late"]} == {"recovery.relay_owed"}
    assert any(
        line.startswith("recovery.relay_owed: 5 min ago (late: it is to run every 5 s): ")
        and "settled 2" in line and "skipped blocked 1" in line for line in told()
    )  # fmt: skip


def test_refusals_and_suppressions_of_the_last_hour(board, status, told):
    board.ask(ago(minutes=1), payload={"task_id": "T2"}, key="k1")
    board.ask(ago(seconds=50), payload={"task_id": "T2"}, key="k1")
    board.ask(ago(minutes=1), agent="zoe")
    board.ask(ago(hours=2), agent="zoe")
    store_agent_assignments(board, *(ago(minutes=number) for number in range(1, 6)))
    board.assigned(ago(seconds=1))
    hour = status()["last_hour"]
    assert {(row["outcome"], row["refusal"]): row["wakes"] for row in hour["decided"]} == {
        ("queued", None): 1, ("deduped", None): 1, ("rate_limited", None): 1, ("none", "agent_not_found"): 1,
    }  # fmt: skip
    assert (hour["at_least"], hour["sessions_kept"]) == (False, [])
    assert any("1 none (agent_not_found)" in line and line.startswith("last hour wakes: ") for line in told())


def test_sessions_that_were_kept_in_the_last_hour(board, status, told):
    create_task(board.engine, "c1", "acme", "Paint", task_id="T1", step_id="start", assignee_id="ana")
    add_participant(board.engine, "m1", "T1", "ana", "reviewer")
    open_session(board, "ana")
    remove_participant(board.engine, "m2", "T1", "ana", "reviewer")
    assert status()["last_hour"]["sessions_kept"] == [{"retained": "runner", "sessions": 1}]
    assert "sessions kept: 1 (runner)" in told()


def test_who_is_paused(board, status, told):
    pause_workspace(board.engine, "p1", "acme", "fire drill", instant=ago(minutes=3))
    for number in range(25):
        admin.create_agent(board.engine, "acme", f"pat{number:02}", status="paused")
    paused = status()["paused"]
    assert (paused["workspaces_paused"], paused["agents_paused"], len(paused["paused_agents"])) == (1, 25, 20)
    assert told()[-2] == f"paused workspaces: acme since {utc(ago(minutes=3))} (fire drill)"
    assert told()[-1].endswith("pat19 (paused) and 5 more")


def test_ended_runs_are_those_of_the_last_analyze(board, status):
    for _ in range(10):
        end(board, store_run(board, ago(minutes=1)), "finished")
    with board.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE runs")
    assert status()["queue"]["ended"] == {"finished": 10, "failed": 0, "cancelled": 0}


@pytest.mark.office_worker(queues="admission,recovery", concurrency=1)
def test_a_real_broker_and_its_workers(board, celery_setup, run_process, office_env):
    """As a process: what waits in each queue that nobody takes, and each worker with its queues."""
    celery_setup.app.send_task("office.execute_run", queue="execution", ignore_result=True)
    seen = run_process("status", "--json", **office_env).document()["broker"]
    assert (seen["error"], seen["waiting"]) == (None, {"admission": 0, "recovery": 0, "execution": 1})
    assert list(seen["workers"].values()) == [["admission", "recovery"]]
