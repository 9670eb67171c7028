"""R08, REC-1: the sweep reads each workspace's recent unstarted tasks by their index, and nothing that only grows."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from db import unstarted
from tests.db.plans import KINDS, analyze, custom, large_office, scanned, statements
from tests.support import T0, after

GROWS = {"runs", "wakes", "tasks", "seats", "blockers", "mutations"}
OF_THE_LOOK = {"ix_tasks_unstarted", "ix_runs_assignments", "ix_wakes_owed"}
RECENT = 216

LED = "UPDATE steps SET primary_agent_id = 'ana' WHERE id = 'start'"
# One task in twenty was left `todo`; 216 of those are younger than a day, and all of them were started.
MANY_TASKS = """
    INSERT INTO tasks (id, workspace_id, step_id, workflow_id, title, status, created_at)
    SELECT 'T' || n, 'acme', 'start', 'flow', '', CASE WHEN n % 20 = 0 THEN 'todo' ELSE 'done' END,
           :at - n * interval '20 s' FROM generate_series(1, 40000) n"""
MANY_RUNS = """
    INSERT INTO runs (id, agent_profile_id, reason, payload, status, requested_at, finished_at)
    SELECT CAST(lpad(to_hex(n), 32, '0') AS uuid), 'ana', 'task_assigned',
           jsonb_build_object('task_id', 'T' || 1 + n % 40000), 'finished', :at - n * interval '7 s', :at
    FROM generate_series(1, 120000) n"""
UNSTARTED = """
    INSERT INTO tasks (id, workspace_id, step_id, workflow_id, title, created_at, recovery_attempts)
    SELECT 'U' || n, 'acme', 'start', 'flow', '', :now, n FROM generate_series(0, 2) n"""


@pytest.fixture(scope="module", params=["analyzed", "never_analyzed"])
def large(request, make_database, template):
    """40,000 tasks, 120,000 runs, three tasks to wake; whether the planner knows or takes the tables for new."""
    with large_office(make_database, template, LED, MANY_TASKS, MANY_RUNS) as board:
        board.execute(UNSTARTED, now=after(minutes=-1))
        if request.param == "analyzed":
            analyze(board)
        yield board


def asked(board):
    """Return every statement that taking a turn sends."""
    with statements(board.engine) as sent, board.engine.connect() as connection:
        look = unstarted.take(connection, 5)
        connection.rollback()
    assert [turn.task_id for turn in look.turns] == ["U0", "U1", "U2"]
    return sent


@pytest.mark.parametrize("kind", KINDS)
def test_it_reads_by_index_in_a_large_table(large, kind):
    """R08, REC-1.3: in both kinds of plan, whatever the planner knows."""
    plans = [KINDS[kind](large.engine, *one) for one in asked(large)]
    assert scanned(plans, GROWS) == []
    _now, look, take = plans
    assert look.indexes >= OF_THE_LOOK
    assert {"pk_tasks", "ix_runs_assignments"} <= take.indexes
    assert "ix_tasks_unstarted" not in take.indexes, "the tasks that were chosen, by their key"


def test_it_reads_what_is_recent_and_not_what_there_is(large):
    """R08: a few blocks for each recent `todo` task, started or not; the tables have some 5,000."""
    look = custom(large.engine, *asked(large)[1])
    assert look.blocks < 12 * RECENT


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_installation_reads_by_index_too(board, kind):
    """R08: tables that are empty, and a plan that may be kept until they are not."""
    board.execute(LED)
    with statements(board.engine) as sent, board.engine.connect() as connection:
        board.execute(UNSTARTED, now=T0)
        connection.execute(text("SELECT set_config('office.now', :now, false)"), {"now": T0.isoformat()})
        assert len(unstarted.take(connection, 5).turns) == 3
        connection.rollback()
    plans = [KINDS[kind](board.engine, *one) for one in sent[-2:]]
    assert scanned(plans, GROWS) == []
    assert plans[0].indexes >= OF_THE_LOOK
