"""What an operator asks of a task's sessions is answered by indexes, in a large office and in a new one."""

from __future__ import annotations

import pytest

from db.engine import autocommit
from db.standing import SHOWN, standing
from office_tasks.producers.creation import create_task
from tests.db.plans import KINDS, analyze, indexes, large_office, scanned, statements

GROWS = {"mutations", "sessions", "tasks"}
INDEXES = {"ix_mutations_guarded", "uq_sessions_live", "ix_sessions_ended"}
ROWS = 200_000
MANY = (
    """
    INSERT INTO tasks (id, workspace_id, title, step_id) SELECT 'T' || n, 'acme', '', 'start'
    FROM generate_series(0, 1999) n""",
    # Half of them took a capacity away, and one task has a hundred times its share.
    """
    INSERT INTO mutations (id, kind, task_id, actor_type, facts, result, committed_at, settled_at)
    SELECT 'm' || n, 'assign_task', CASE WHEN n % 20 = 0 THEN 'T0' ELSE 'T' || n % 2000 END, 'user',
           jsonb_build_object('result', '{}', 'guard', CASE WHEN n % 2 = 0 THEN jsonb_build_object(
               'task_id', 'T' || n % 2000, 'agent_profile_id', 'ana', 'reason', 'task_reassigned') END),
           jsonb_build_object('session', jsonb_build_object('terminated', false, 'retained', 'seat')),
           :at - n * interval '1 min', :at - n * interval '1 min'
    FROM generate_series(1, :rows) n""",
    """
    INSERT INTO sessions (id, task_id, agent_profile_id, state, reason, ended_at)
    SELECT gen_random_uuid(), 'T' || n % 2000, 'a' || n, CASE WHEN n % 10 = 0 THEN 'idle' ELSE 'completed' END,
           CASE WHEN n % 10 > 0 THEN 'task_reassigned' END, CASE WHEN n % 10 > 0 THEN :at - n * interval '1 min' END
    FROM generate_series(1, :rows) n""",
)


@pytest.fixture(scope="module")
def large(make_database, template):
    """200,000 mutations and sessions of 2,000 tasks, analyzed."""
    with large_office(make_database, template, *MANY, rows=ROWS) as board:
        analyze(board)
        yield board


def plans_of(board, kind, task):
    with statements(board.engine) as sent, autocommit(board.engine) as connection:
        found = standing(connection, task)
    asked = [one for one in sent if " FROM " in one[0]]
    return found, [KINDS[kind](board.engine, *one) for one in asked]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", ["T0", "T10"])
def test_each_question_has_its_index_in_a_large_office(large, kind, task):
    """R08: 200,000 mutations: what took a capacity away from one task's agents, newest first, by its own index."""
    found, plans = plans_of(large, kind, task)
    assert scanned(plans, GROWS) == []
    assert indexes(plans) >= INDEXES
    assert (len(found.kept.rows), found.kept.more) == (SHOWN, True)
    if kind == "custom":
        assert max(plan.blocks for plan in plans) <= 250


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_office_is_not_read_as_a_whole_either(board, kind):
    """R08: what was never analyzed."""
    create_task(board.engine, "m0", "acme", "Paint", task_id="T1", step_id="start", assignee_id="ana")
    found, plans = plans_of(board, kind, "T1")
    assert found.task["runner_id"] == "ana"
    assert scanned(plans, GROWS) == []
