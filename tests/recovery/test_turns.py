"""Whose turn it is: nobody starves, whatever others do, in one workspace or many (REC-1.4)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from office_tasks import admin
from recovery.sweep import CAP, sweep_once
from tests.support import after

# What becomes of a task when it is woken: it starts; its run fails at once; its run cannot be written. Or it cannot be
# woken at all.
KINDS = ("starts", "flops", "raises", "stopped")
NO_RUN_OF_RAISES = """
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.agent_profile_id LIKE '%-raises' THEN RAISE EXCEPTION 'no run of it'; END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER fail BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION fail()"""


def woken(board):
    return [run["task_id"] for run in board.runs()]


def ten_thousand(board):
    """Give `acme` 10,000 candidates, older than anybody's."""
    board.execute("UPDATE steps SET primary_agent_id = 'ana' WHERE id = 'start'")
    board.execute(
        "INSERT INTO tasks (id, workspace_id, step_id, workflow_id, title, created_at, assignment_generation) "
        "SELECT 'big' || n, 'acme', 'start', 'flow', 'big', :at, 0 FROM generate_series(1, 10000) n",
        at=after(hours=-1),
    )


@pytest.fixture
def small(board, unstarted):
    """Return a function that makes a workspace with one candidate and returns the task: `small("w1")`."""

    def make(name):
        admin.create_workspace(board.engine, name, workflow_id=f"flow-{name}")
        admin.create_step(board.engine, name, f"step-{name}", workflow_id=f"flow-{name}", auto_start=True)
        admin.create_agent(board.engine, name, f"agent-{name}")
        return unstarted(f"T-{name}", f"agent-{name}", workspace=name, step=f"step-{name}", workflow_id=f"flow-{name}")

    return make


def test_one_beside_ten_thousand_is_woken_by_the_first_tick(board, small, tick):
    """REC-1.4: two workspaces with candidates: a single one waits for one tick."""
    ten_thousand(board)
    task = small("small")
    done = tick(minutes=1)
    assert (done["candidates"], done["dispatched"]) == (10_001, CAP)
    assert task in woken(board)


def test_a_workspace_that_comes_later_does_not_wait_for_a_backlog(board, small, tick):
    """REC-1.4: the backlog has been served for two ticks when the single one arrives."""
    ten_thousand(board)
    for minute in (1, 2):
        tick(minutes=minute)
    task = small("late")
    assert tick(minutes=3)["dispatched"] == CAP
    assert task in woken(board)


def test_twelve_workspaces_have_had_a_turn_after_three_ticks(board, small, tick):
    """REC-1.4: one with 10,000 delays eleven others by no more than the turns of the workspaces, five a tick."""
    ten_thousand(board)
    tasks = {small(f"w{number}") for number in range(11)}
    for minute in range(1, -(-12 // CAP) + 1):
        tick(minutes=minute)
    assert tasks < set(woken(board))


def test_five_that_keep_failing_alone_in_their_workspaces_hold_back_nobody(board, unstarted, small, tick):
    """REC-1.4: fifteen candidates: three ticks, though five workspaces of one failing task each take turns too."""
    for number in range(5):
        small(f"w{number}")
    tasks = {unstarted(f"T{number}") for number in range(10)}
    for minute in (1, 2, 3):
        tick(minutes=minute)
        board.execute("UPDATE runs SET status = 'failed', finished_at = requested_at WHERE agent_profile_id <> 'ana'")
    assert tasks < set(woken(board))


@pytest.fixture
def mixed(board, unstarted):
    """Return a function that fills six workspaces with a mix of tasks and returns them by kind."""
    board.execute(NO_RUN_OF_RAISES)

    def fill(mix):
        for table in ("runs", "wakes", "mutations", "tasks"):
            board.execute(f"DELETE FROM {table}")
        board.execute("UPDATE workspaces SET recovery_served_at = NULL")
        made = {kind: [] for kind in KINDS}
        for number, (name, kind, age) in enumerate(mix):
            places = {"workspace": name, "step": f"step-{name}", "workflow_id": f"flow-{name}"}
            made[kind] += [unstarted(f"T{number}", f"{name}-{kind}", created=after(minutes=-age), **places)]
        return made

    for name in "abcdef":
        admin.create_workspace(board.engine, name, workflow_id=f"flow-{name}")
        admin.create_step(board.engine, name, f"step-{name}", workflow_id=f"flow-{name}", auto_start=True)
        for kind in KINDS:
            status = {"status": "stopped"} if kind == "stopped" else {}
            admin.create_agent(board.engine, name, f"{name}-{kind}", **status)
    return fill


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    mix=st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from(KINDS), st.integers(1, 9)), min_size=1, max_size=30
    )
)
def test_every_wakeable_candidate_has_its_turn(board, mixed, tick, mix):
    """REC-1.4: within n/5 ticks, rounded up, whatever fails or is passed over beside it, in whatever workspaces."""
    tasks = mixed(mix)
    wakeable = tasks["starts"] + tasks["flops"] + tasks["raises"]
    for number in range(-(-len(wakeable) // CAP)):
        done = tick(minutes=number + 1)
        assert done["skipped"].get("agent_not_wakeable", 0) == len(tasks["stopped"])
        board.execute(
            "UPDATE runs SET status = 'failed', finished_at = requested_at WHERE agent_profile_id LIKE '%-flops'"
        )
    asked = [wake["task_id"] for wake in board.wakes()]
    assert set(asked) == set(wakeable)
    assert set(woken(board)) == set(tasks["starts"] + tasks["flops"])


def test_a_pass_takes_five_at_the_most_whatever_comes_of_them(board, mixed, at):
    """REC-1.3: failing ones count; what they leave free is not filled up."""
    mixed([("a", "raises", 9)] * 7 + [("b", "flops", 1)] * 2)
    done = sweep_once(at(minutes=1), "s")
    assert (done["dispatched"], done["failed"], board.count("wakes")) == (2, 3, CAP)
