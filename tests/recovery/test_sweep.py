"""The sweep: which tasks count as unstarted, how many are woken at a time, and whose turn it is."""

from __future__ import annotations

import itertools
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from structlog.testing import capture_logs

from office_tasks import admin
from office_tasks.ids import new_id
from office_tasks.producers.assignments import assign_task
from recovery.sweep import CAP, sweep_once
from tests.admission.rows import store_run
from tests.support import T0, after


@pytest.fixture
def tick(at):
    """Return a function that runs one sweep, that much after T0: `tick(minutes=1)`."""
    engines = {}

    def run(**delta):
        key = tuple(delta.items())
        engines[key] = engines.get(key) or at(**delta)
        return sweep_once(engines[key], str(new_id()))

    return run


@pytest.fixture
def unstarted(board):
    """Return a function that puts a task on the board, assigned to `agent` and never started."""

    def make(task, agent="ana", *, created=T0, workspace="acme", step="start", **columns):
        columns = {"status": "todo", "workflow_id": "flow", "assignment_generation": 1, **columns}
        names = ", ".join(columns)
        board.execute(
            f"INSERT INTO tasks (id, workspace_id, step_id, title, created_at, {names}) "
            f"VALUES (:id, :workspace, :step, :id, :created, {', '.join(':' + name for name in columns)})",
            id=task, workspace=workspace, step=step, created=created, **columns,
        )  # fmt: skip
        if agent:
            board.execute(
                "INSERT INTO seats (id, task_id, step_id, role, agent_profile_id) "
                "VALUES (gen_random_uuid(), :task, :step, 'runner', :agent)",
                task=task, step=step, agent=agent,
            )  # fmt: skip
        return task

    return make


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
        {"recovery_next_at": after(hours=1)},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_what_is_no_candidate_is_not_even_counted(unstarted, tick, columns):
    """REC-1.1, C25: done, archived, ephemeral, an automation's, no office task, too old, unassigned, not yet again."""
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


def test_a_reassigned_task_goes_to_its_present_agent(board, unstarted, tick):
    """C25: and begins anew: what was tried for the last agent is not held against it."""
    unstarted("T1", recovery_attempts=5, recovery_next_at=after(hours=1))
    run = assign_task(board.engine, "m1", "T1", "bob", instant=T0)["runs"][0]
    board.execute("UPDATE runs SET status = 'failed', finished_at = now() WHERE id = :id", id=run)
    assert tick(minutes=1)["dispatched"] == 1
    assert board.runs()[-1]["agent_profile_id"] == "bob"


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


def test_workspaces_take_turns(board, unstarted, tick):
    """REC-1.4: one with many candidates does not delay another's single one."""
    admin.create_workspace(board.engine, "small", workflow_id="tiny")
    admin.create_step(board.engine, "small", "begin", workflow_id="tiny", auto_start=True)
    admin.create_agent(board.engine, "small", "sue")
    board.execute(
        "INSERT INTO tasks (id, workspace_id, step_id, workflow_id, title, created_at, assignment_generation) "
        "SELECT 'big' || n, 'acme', 'start', 'flow', 'big', :at, 0 FROM generate_series(1, 10000) n",
        at=after(hours=-1),
    )
    board.execute("UPDATE steps SET primary_agent_id = 'ana' WHERE id = 'start'")
    unstarted("S1", "sue", workspace="small", step="begin", workflow_id="tiny")
    assert tick(minutes=1)["dispatched"] == CAP
    assert "S1" in woken(board)


def test_a_task_that_keeps_failing_comes_back_later_each_time(board, unstarted, tick):
    """REC-1.5, C25: gaps of 1, 2, 4 ... at most 60 minutes; fewer than 50 launches a day."""
    unstarted("T1", created=T0)
    launches = []
    for minute in range(1, 24 * 60, 1):
        [row] = board.rows("SELECT recovery_next_at FROM tasks")
        if row["recovery_next_at"] and row["recovery_next_at"] > after(minutes=minute):
            continue
        launches += [minute] * tick(minutes=minute)["dispatched"]
        fail_all(board)
    gaps = [later - earlier for earlier, later in itertools.pairwise(launches)]
    assert gaps[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert set(gaps[7:]) == {60}
    assert len(launches) < 50


def test_nothing_is_looked_at_where_nobody_adopted_the_office(board, unstarted, tick):
    """REC-1.7: no office workflow, no project: the tasks are not read at all."""
    unstarted("T1")
    board.execute("UPDATE workspaces SET office_workflow_id = NULL")
    board.execute("ALTER TABLE tasks RENAME TO elsewhere")
    assert tick(minutes=1) == {"candidates": 0, "dispatched": 0, "skipped": {}, "failed": 0}


def test_a_tick_that_cannot_get_the_lock_says_so(board, unstarted, tick):
    """REC-1.8: and touches nothing."""
    unstarted("T1")
    with board.engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('office.recovery'))"))
        assert tick(minutes=1)["lock"] == "taken"
    assert (woken(board), tick(minutes=1)["dispatched"]) == ([], 1)


def test_sweeps_at_once_wake_a_task_once(board, unstarted, at):
    """REC-1.8, C19: many at the same instant, five tasks: five runs, one each."""
    tasks = [unstarted(f"T{number}") for number in range(5)]
    engines = [at(minutes=1) for _ in range(4)]
    start = threading.Barrier(4)

    def sweep(engine):
        start.wait()
        for _ in range(3):
            sweep_once(engine, str(new_id()))

    threads = [threading.Thread(target=sweep, args=(engine,)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(woken(board)) == tasks


def test_one_that_fails_stops_no_other(board, unstarted, tick):
    """REC-1.9: the summary and the log say what became of each."""
    tasks = [unstarted(f"T{number}") for number in range(3)]
    board.execute("ALTER TABLE wakes ADD CONSTRAINT not_t1 CHECK (payload ->> 'task_id' <> 'T1')")
    with capture_logs() as logs:
        done = tick(minutes=1)
    assert (done["dispatched"], done["failed"]) == (2, 1)
    said = [(line["event"], line.get("task_id")) for line in logs if line["event"].startswith("recovery")]
    assert said == [
        ("recovery_dispatch", "T0"), ("recovery_failed", "T1"), ("recovery_dispatch", "T2"),
        ("recovery_sweep_complete", None),
    ]  # fmt: skip
    assert sorted(woken(board)) == [tasks[0], tasks[2]]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mix=st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=18))
def test_every_wakeable_candidate_has_its_turn(board, unstarted, tick, mix):
    """REC-1.4: within n/5 ticks, rounded up, whatever else is passed over, in whatever mix of workspaces."""
    board.execute("DELETE FROM runs")
    board.execute("DELETE FROM tasks")
    board.execute("DELETE FROM workspaces WHERE id IN ('a', 'b', 'c')")
    board.execute("DELETE FROM agents WHERE id LIKE '%-up' OR id LIKE '%-down'")
    for name in "abc":
        admin.create_workspace(board.engine, name, workflow_id=f"flow-{name}")
        admin.create_step(board.engine, name, f"{name}-start", workflow_id=f"flow-{name}", auto_start=True)
        admin.create_agent(board.engine, name, f"{name}-up")
        admin.create_agent(board.engine, name, f"{name}-down", status="stopped")
    for number, (name, up) in enumerate(mix):
        agent = f"{name}-{'up' if up else 'down'}"
        unstarted(f"T{number}", agent, workspace=name, step=f"{name}-start", workflow_id=f"flow-{name}")
    wakeable = sum(up for _, up in mix)
    for number in range(-(-wakeable // CAP)):
        tick(minutes=number + 1)
    assert len(woken(board)) == wakeable
