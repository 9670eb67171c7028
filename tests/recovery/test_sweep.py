"""The sweep: which tasks count as unstarted, how many are woken at a time, and whose turn it is."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from office_tasks import admin
from office_tasks.producers.assignments import assign_task
from recovery.relay import relay_once
from tests.admission.rows import store_run
from tests.support import T0, after


def woken(board):
    return [run["task_id"] for run in board.runs()]


def fail_all(board):
    board.execute("UPDATE runs SET status = 'failed', finished_at = requested_at WHERE status = 'queued'")


def test_an_assigned_task_that_never_started_is_woken(board, unstarted, tick):
    """REC-1.1, REC-1.6: through the seam, keyless by design, with the task and no actor."""
    unstarted("T1")
    assert tick(minutes=1) == {"candidates": 1, "dispatched": 1, "skipped": {}, "failed": 0}
    [run], [wake] = board.runs(), board.wakes()
    assert (run["payload"], run["idempotency_key"], run["agent_profile_id"]) == ({"task_id": "T1"}, None, "ana")
    assert (wake["producer"], wake["keyless_cause"], wake["keyless_detail"]) == ("recovery_sweep", "by_design", None)
    assert tick(minutes=2)["candidates"] == 0


@pytest.mark.parametrize("status", ["queued", "claimed", "finished"])
def test_a_task_that_was_started_is_left_alone(board, unstarted, tick, status):
    """REC-1.1, C25: queued, claimed or finished, however old."""
    unstarted("T1")
    store_run(board, after(days=-10), payload={"task_id": "T1"}, status=status)
    assert tick(minutes=1)["candidates"] == 0


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_start_that_came_to_nothing_is_no_start(board, unstarted, tick, status):
    """REC-1.1, REC-1.6, C25: the failed run bears the assignment's key, and the sweep is not told "duplicate"."""
    unstarted("T1")
    run = store_run(board, after(hours=-1), payload={"task_id": "T1"}, key="task_assigned:T1:ana:1")
    board.execute("UPDATE runs SET status = :status, finished_at = now() WHERE id = :id", status=status, id=run)
    assert tick(minutes=1)["dispatched"] == 1


@pytest.mark.parametrize(
    "columns",
    [
        {"status": "done"},
        {"status": "in_progress"},
        {"archived_at": T0},
        {"is_ephemeral": True},
        {"created_by_automation": True},
        {"workflow_id": None},
        {"created": after(hours=-25)},
        {"agent": None},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_what_is_no_candidate_is_not_even_counted(unstarted, tick, columns):
    """REC-1.1, C25: done, archived, ephemeral, an automation's, no office task, too old, unassigned."""
    unstarted("T1", **columns)
    assert tick(minutes=1)["candidates"] == 0


def test_a_primary_agent_drives_a_task_that_was_never_assigned(board, unstarted, tick):
    """REC-1.1, SES-2.1: the runner projection finds the step's primary agent; after an unassignment it does not."""
    board.execute("UPDATE steps SET primary_agent_id = 'bob' WHERE id = 'start'")
    unstarted("T1", None, assignment_generation=0)
    unstarted("T2", None, assignment_generation=2)
    assert tick(minutes=1)["candidates"] == 1
    assert [run["agent_profile_id"] for run in board.runs()] == ["bob"]


def test_a_task_whose_wake_is_owed_is_the_relays(board, unstarted, tick):
    """REC-1.1: an owed `task_assigned` wake names it."""
    unstarted("T1", None, assignment_generation=0)
    board.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
    assign_task(board.engine, "m1", "T1", "ana", instant=T0)
    board.execute("UPDATE pauses SET resumed_at = now()")
    assert tick(minutes=1)["candidates"] == 0


def test_what_is_passed_over_is_counted_and_costs_no_turn(board, unstarted, tick):
    """REC-1.2, C06: five older tasks of a paused agent and others in the way; the healthy sixth is woken at once."""
    admin.create_agent(board.engine, "acme", "pat", status="paused")
    for number in range(5):
        unstarted(f"P{number}", "pat", created=after(minutes=-30 + number))
    unstarted("W", step="wait")
    unstarted("B")
    unstarted("X", status="in_progress")
    board.execute("INSERT INTO blockers (task_id, blocker_id) VALUES ('B', 'X')")
    unstarted("G", "ghost")
    unstarted("T6")
    done = tick(minutes=1)
    assert done["skipped"] == {
        "agent_not_wakeable": 5, "step_does_not_auto_start": 1, "blocked": 1, "agent_not_found": 1,
    }  # fmt: skip
    assert (done["candidates"], done["dispatched"], woken(board)) == (9, 1, ["T6"])


def test_a_pause_holds_the_sweep_and_its_end_lets_it_go(board, unstarted, tick):
    """C11, REC-1.2: three ticks in the pause wake nobody; one after it wakes all three."""
    for number in range(3):
        unstarted(f"T{number}")
    board.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
    assert [tick(minutes=n)["skipped"] for n in (1, 2, 3)] == [{"workspace_paused": 3}] * 3
    board.execute("UPDATE pauses SET resumed_at = now()")
    assert tick(minutes=4)["dispatched"] == 3


def test_at_most_five_a_tick_oldest_first(board, unstarted, tick):
    """REC-1.3, C06: 12 tasks: 5, 10, 12 runs after three ticks."""
    tasks = [unstarted(f"T{number:02}", created=after(minutes=number - 30)) for number in range(12)]
    for minutes, there in ((1, 5), (2, 10), (3, 12)):
        tick(minutes=minutes)
        assert sorted(woken(board)) == tasks[:there]


def test_nothing_is_looked_at_where_nobody_adopted_the_office(board, unstarted, tick):
    """REC-1.7: no office workflow, no project: the tasks are not read at all."""
    unstarted("T1")
    board.execute("UPDATE workspaces SET office_workflow_id = NULL")
    board.execute("ALTER TABLE tasks RENAME TO elsewhere")
    assert tick(minutes=1) == {"candidates": 0, "dispatched": 0, "skipped": {}, "failed": 0}


# A wake that cannot be written, or its run that cannot: each a candidate's own fault.
FAULTS = {
    "wakes": "ALTER TABLE wakes ADD CONSTRAINT not_t1 CHECK (payload ->> 'task_id' <> 'T1')",
    "runs": "ALTER TABLE runs ADD CONSTRAINT not_t1 CHECK (payload ->> 'task_id' <> 'T1')",
}


@pytest.mark.parametrize("table", FAULTS)
def test_one_that_fails_stops_no_other(board, unstarted, tick, table):
    """REC-1.9: the summary and the log say what became of each."""
    tasks = [unstarted(f"T{number}") for number in range(3)]
    board.execute(FAULTS[table])
    with capture_logs() as logs:
        done = tick(minutes=1)
    assert (done["candidates"], done["dispatched"], done["failed"]) == (3, 2, 1)
    said = [(line["event"], line.get("task_id")) for line in logs if line["event"].startswith("recovery")]
    assert sorted(said[:-1]) == [("recovery_dispatch", "T0"), ("recovery_dispatch", "T2"), ("recovery_failed", "T1")]
    assert said[-1] == ("recovery_sweep_complete", None)
    assert sorted(woken(board)) == [tasks[0], tasks[2]]


def test_what_could_not_be_admitted_is_owed_and_the_relays(board, unstarted, tick, at):
    """REC-1.1, REC-3.1: it is no candidate meanwhile; once it can be admitted, it is, and once."""
    unstarted("T1")
    board.execute(FAULTS["runs"])
    assert tick(minutes=1)["failed"] == 1
    assert [tick(minutes=minute)["candidates"] for minute in (2, 3)] == [0, 0]
    board.execute("ALTER TABLE runs DROP CONSTRAINT not_t1")
    assert relay_once(at(minutes=4), None)["decided"] == 1
    assert (woken(board), tick(minutes=5)["candidates"]) == (["T1"], 0)
