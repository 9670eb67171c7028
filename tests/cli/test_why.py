"""ADM-10.6: `office why` in constructed situations, each with the sentence it must give."""

from __future__ import annotations

import json

import pytest
from structlog.testing import capture_logs

from office_tasks import admin
from office_tasks.admission import poison, stored
from office_tasks.devstack import Redis
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.pauses import pause_workspace, resume_workspace
from office_tasks.why.runs import CANCELLED_BECAUSE
from tests.admission.rows import store_agent_assignments, store_run
from tests.cli.moments import ago, begin, coming, utc
from tests.recovery.conftest import at, cut_off, tick, unstarted  # noqa: F401 - fixtures


@pytest.fixture(autouse=True)
def quiet():
    begin()
    with capture_logs():
        yield


def claim(board, run_id, lease=60, since=10):
    board.execute(
        "UPDATE runs SET status = 'claimed', attempt = 2, lease_token = gen_random_uuid(), claimed_at = :since, "
        "lease_expires_at = :lease WHERE id = :id", id=run_id, since=ago(seconds=since), lease=coming(seconds=lease),
    )  # fmt: skip


def end(board, run_id, status, **columns):
    named = "".join(f", {name} = :{name}" for name in columns)
    board.execute(
        f"UPDATE runs SET status = :status, finished_at = :at, lease_token = NULL{named} WHERE id = :id",
        id=run_id, status=status, at=ago(seconds=1), **columns,
    )  # fmt: skip


def test_01_a_wake_that_no_gate_stopped(board, why, unstarted):  # noqa: F811 - the fixture
    unstarted("T1")
    answer = board.assigned(ago(seconds=30))
    document = why("T1")
    assert document["wakes"][0]["sentences"] == [
        (
            f"No gate stopped it: it became run {answer.run_id}. "
            "Agents had had the task assigned 0 times within 10 minutes, and may 5."
        )
    ]
    assert document["runs"][0]["sentences"] == [
        f"It is queued since {utc(ago(seconds=30))}: nothing is in its way: it starts when a worker takes it up."
    ]


def test_02_a_wake_that_was_merged(board, wake_said):
    first = board.ask(ago(seconds=30), payload={"task_id": "T1"})
    board.ask(ago(seconds=28), payload={"task_id": "T1"})
    assert wake_said("T1") == [
        f"Gate 4 (coalesce) merged it into run {first.run_id}, a like one of the last 5 s that still waited."
    ]


def test_03_a_redelivery(board, wake_said):
    first = board.assigned(ago(hours=1), by="user", key="k1")
    board.assigned(ago(minutes=1), by="user", key="k1")
    assert wake_said("T1") == [
        f"Gate 3 (recent duplicate) declined it: run {first.run_id} came by its key k1 within the last 24 h."
    ]


def test_04_a_key_that_the_index_holds(board, wake_said):
    first = board.assigned(ago(hours=25), by="user", key="k1")
    board.assigned(ago(minutes=1), by="user", key="k1")
    assert wake_said("T1") == [f"Gate 6 (insert) declined it: run {first.run_id} bears its key k1 already."]


def test_05_an_exhausted_allowance(board, wake_said):
    store_agent_assignments(board, *(ago(minutes=number) for number in range(1, 6)))
    board.assigned(ago(seconds=1))
    assert wake_said("T1") == [
        (
            "Gate 5 (assignment allowance) declined it: agents had had the task assigned 5 times within 10 minutes, "
            "and may 5. The change itself stands; a user is not limited."
        )
    ]


def test_06_an_agent_that_was_paused(board, wake_said):
    admin.set_agent_status(board.engine, "ana", "paused")
    board.assigned()
    assert wake_said("T1") == ["Gate 1 (agent status) refused it (agent_not_wakeable): agent 'ana' is paused."]


def test_07_an_agent_that_is_not_there(board, wake_said):
    board.assigned(agent="zoe")
    assert wake_said("T1") == ["Gate 1 (agent status) refused it (agent_not_found): there is no agent 'zoe'."]


def test_08_a_bare_wake_in_a_paused_workspace(board, wake_said):
    pause_workspace(board.engine, "p1", "acme")
    board.assigned()
    assert wake_said("T1") == [
        "Gate 2 (workspace pause) refused it (workspace_paused): the workspace of agent 'ana' is paused."
    ]


def test_09_a_pause_that_could_not_be_read(board, wake_said):
    board.execute("UPDATE agents SET workspace_id = NULL WHERE id = 'ana'")
    board.assigned()
    assert wake_said("T1") == [
        (
            "Gate 2 (workspace pause) refused it (pause_gate_unavailable): "
            "cannot read whether the workspace of 'ana' is paused."
        )
    ]


def test_10_a_wake_that_a_pause_holds(board, task, why):
    pause_workspace(board.engine, "p1", "acme", "fire drill", instant=ago(minutes=3))
    assign_task(board.engine, "m1", task, "ana")
    document = why(task)
    assert document["wakes"][0]["sentences"] == [
        (
            f"It is owed: workspace acme is paused since {utc(ago(minutes=3))} (fire drill). "
            "It passes the gates when that is resumed."
        )
    ]
    assert document["now"] == ["The sweep leaves it alone: a wake for its assignment is owed, which the relay decides."]


@pytest.fixture
def owed(board, task, cut_off):  # noqa: F811 - the fixture
    cut_off(assign_task, board.engine, "m1", task, "ana")
    return "m1#1"


def test_11_a_wake_that_keeps_failing(board, owed, wake_said):
    board.execute(
        "UPDATE wakes SET attempts = 6, last_error = '57014: canceling statement due to statement timeout', "
        "next_attempt_at = :at", at=coming(minutes=25),
    )  # fmt: skip
    assert wake_said(owed) == [
        f"It is owed: the relay tries it again at {utc(coming(minutes=25))}.",
        "It was tried 6 times and failed, the last time with: 57014: canceling statement due to statement timeout.",
    ]


def test_12_a_wake_that_the_relay_is_about_to_take(owed, why, broker_away):
    document = why(owed)
    assert document["wakes"][0]["sentences"] == [
        "It is owed: the relay takes it up at its next pass, 2 s after it was asked."
    ]
    assert document["now"][-1].startswith(f"The broker {broker_away} does not answer (")


def test_13_an_assignment_that_a_later_one_made_moot(board, task, why):
    pause_workspace(board.engine, "p1", "acme")
    assign_task(board.engine, "m1", task, "ana")
    assign_task(board.engine, "m2", task, "bob")
    resume_workspace(board.engine, "p2", "acme")
    assert why("m1#1")["wakes"][0]["sentences"] == [
        "It was closed undecided: while it was owed, a later assignment made it moot."
    ]
    assert why("m1#1")["runs"] == []


def test_14_a_message_that_killed_its_workers(board, owed, wake_said):
    with board.engine.connect() as connection:
        row = connection.exec_driver_sql("SELECT * FROM wakes").mappings().one()
    poison(board.engine, stored(row))
    assert wake_said(owed) == ["It was given up: its message was delivered too often."]


def test_15_a_run_behind_another_of_its_agent(board, run_said, unstarted):  # noqa: F811 - the fixture
    unstarted("T1")
    claim(board, store_run(board, ago(minutes=2), payload={"task_id": "T0"}))
    store_run(board, ago(seconds=90), payload={"task_id": "T0"})
    run_id = store_run(board, ago(minutes=1), payload={"task_id": "T1"})
    said = [
        (
            f"It is queued since {utc(ago(minutes=1))}: agent ana executes 1 run, and may execute 1 at once; "
            "1 of the agent's runs is in line before it."
        )
    ]
    assert run_said("T1") == run_said(run_id) == said


def test_16_a_run_whose_agent_and_workspace_were_paused_since(board, run_said, unstarted):  # noqa: F811 - the fixture
    unstarted("T1")
    board.assigned(ago(minutes=5))
    admin.set_agent_status(board.engine, "ana", "stopped")
    pause_workspace(board.engine, "p1", "acme", instant=ago(minutes=1))
    assert run_said("T1") == [
        (
            f"It is queued since {utc(ago(minutes=5))}: agent ana is stopped; "
            f"workspace acme is paused since {utc(ago(minutes=1))}."
        )
    ]


def test_17_a_run_that_waits_for_its_retry(board, run_said, unstarted):  # noqa: F811 - the fixture
    unstarted("T1")
    run_id = store_run(board, ago(minutes=5), payload={"task_id": "T1"}, retry_at=coming(minutes=10))
    board.execute("UPDATE runs SET attempt = 2, error = 'ValueError: no paint' WHERE id = :id", id=run_id)
    assert run_said("T1") == [
        f"It is queued since {utc(ago(minutes=5))}: it is tried again at {utc(coming(minutes=10))}.",
        "Attempt 2 failed: ValueError: no paint. 3 attempts left.",
    ]


def test_18_a_run_that_is_executed(board, run_said):
    claim(board, board.assigned(ago(minutes=1)).run_id, lease=900)
    assert run_said("T1") == [
        f"It is executed since {utc(ago(seconds=10))}, attempt 2 of 5.",
        f"Its worker renews its lease, which holds until {utc(coming(seconds=900))}.",
    ]


def test_19_a_run_whose_worker_died(board, run_said):
    claim(board, board.assigned(ago(minutes=3)).run_id, lease=-30, since=90)
    assert run_said("T1")[1] == (
        f"Its lease ran out at {utc(ago(seconds=30))}: its worker died or stood still, and the rescue takes it over."
    )


def test_20_a_run_that_is_asked_to_stop(board, run_said):
    run_id = board.assigned(ago(minutes=1)).run_id
    claim(board, run_id)
    board.execute(
        "UPDATE runs SET cancel_requested_at = :at, cancel_reason = 'operator' WHERE id = :id",
        id=run_id, at=ago(seconds=5),
    )  # fmt: skip
    assert run_said("T1")[1] == f"It was asked to stop at {utc(ago(seconds=5))}: an operator cancelled it."


@pytest.mark.parametrize("reason", CANCELLED_BECAUSE)
def test_21_a_run_that_was_cancelled(board, run_said, reason):
    end(board, board.assigned(ago(minutes=1)).run_id, "cancelled", cancel_reason=reason)
    assert run_said("T1") == [f"It was cancelled at {utc(ago(seconds=1))}: {CANCELLED_BECAUSE[reason]}."]


def test_22_a_run_that_failed_for_good(board, run_said):
    end(board, board.assigned(ago(hours=3)).run_id, "failed", attempt=5, error="ValueError: no paint")
    assert run_said("T1") == [f"It failed for good at {utc(ago(seconds=1))}, in attempt 5 of 5: ValueError: no paint."]


def test_23_a_run_that_finished_is_a_start(board, task, why):
    assign_task(board.engine, "m1", task, "ana")
    end(board, board.runs()[0]["id"], "finished", attempt=1)
    document = why(task)
    assert document["runs"][0]["sentences"] == [f"It finished at {utc(ago(seconds=1))}, in attempt 1 of 5."]
    assert document["now"] == [
        "The sweep leaves it alone: it has a run that is queued, claimed or finished, so it was started."
    ]


def test_27_a_run_whose_wakes_are_asked_for_by_its_id(board, why):
    first = board.ask(ago(seconds=30), payload={"task_id": "T1"}, wake_id="w1")
    board.ask(ago(seconds=29), payload={"task_id": "T1"}, wake_id="w2")
    document = why(first.run_id)
    assert (document["kind"], [wake["id"] for wake in document["wakes"]]) == ("run", ["w2", "w1"])
    assert document["now"][0] == "There is no task T1 on the board."
    assert [wake["id"] for wake in why("w1")["wakes"]] == ["w1"]


def test_28_a_run_that_was_purged(board, wake_said):
    first = board.assigned(ago(hours=1), by="user", key="k1")
    board.assigned(ago(minutes=1), by="user", key="k1")
    board.execute("DELETE FROM runs WHERE id = :id", id=first.run_id)
    assert wake_said("T1")[-1] == "That run is not there any more: it is past its retention."


def test_30_a_run_that_no_worker_is_there_for(run, board, at_broker):
    with Redis() as broker:
        at_broker(broker.url)
        board.assigned(ago(minutes=1))
        now = json.loads(run("why", "T1", "--json").out)["now"]
    assert now[-1] == "No worker that takes the queue execution answered within 1 s."


def test_29_a_run_that_its_task_has_left_behind(board, task, why):
    assign_task(board.engine, "m1", task, "ana")
    assign_task(board.engine, "m2", task, "bob")
    of_bob, of_ana = [run["sentences"] for run in why(task)["runs"]]
    assert len(of_bob) == 1
    assert of_ana[1:] == ["Whoever takes it up cancels it: somebody else drives the task now."]


@pytest.mark.usefixtures("broker_away")
def test_who_asked_is_named(board, run):
    board.assigned(ago(minutes=2))
    board.ask(ago(minutes=1), payload={"task_id": "T1"}, reason="nightly")
    told = [line for line in run("why", "T1").out.splitlines() if " asked " in line]
    assert " nightly of ana, asked by nobody that is named through test " in told[0]
    assert " task_assigned of ana, asked by agent bob through test " in told[1]


def test_no_more_than_the_latest_are_shown(board, why):
    for number in range(25):
        board.ask(ago(minutes=number), payload={"task_id": "T1"}, reason=f"r{number}")
    document = why("T1")
    assert [wake["reason"] for wake in document["wakes"]] == [f"r{number}" for number in range(20)]


def test_wakes_of_one_change_are_told_by_their_number(board, run, why, task):
    ids = [f"m1#{number}" for number in range(1, 26)]
    for wake_id in ids:
        board.ask(ago(minutes=1), payload={"task_id": task}, reason=wake_id, wake_id=wake_id)
    newest = ids[:4:-1]
    assert [wake["id"] for wake in why(task)["wakes"]] == newest
    assert [wake["id"] for wake in json.loads(run("task", "show", task, "--json").out)["wakes"]] == newest


@pytest.mark.parametrize("named", ["T9", "01a22a4d-e652-7248-9740-64f8d86a56ea", ""])
@pytest.mark.usefixtures("board")
def test_what_is_not_there_is_one_sentence_and_exit_1(run, named):
    said = run("why", named)
    assert (said.code, said.out) == (1, "")
    assert said.err == f"office: there is no task, run or wake {named!r}, or it is past its retention\n"


@pytest.mark.parametrize("command", ["why", "doctor", "status"])
def test_its_help_promises_no_table(run, command):
    assert "table" not in run(command, "--help").out


@pytest.mark.parametrize("command", ["why", "task show", "seat list", "session show"])
@pytest.mark.usefixtures("board")
def test_what_is_no_id_is_not_repeated(run, command):
    said = run(*command.split(), "x" * 70_000)
    assert said.code == 1
    assert "<text, 70000 bytes>" in said.err
    assert len(said.err) < 200
