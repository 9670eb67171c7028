"""What the question costs: one statement, one round trip, and only what an index finds."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from db import capacity, slate
from db.engine import autocommit
from tests.db.plans import KINDS, analyze, custom, large_office, statements

TABLES = {"tasks", "seats", "steps"}

# A workspace of 20,000 tasks on a hundred steps: `busy` sits on every one of them, and on every step's template.
MANY = """
    INSERT INTO agents (id, workspace_id, name) SELECT 'a' || n, 'acme', '' FROM generate_series(0, 999) n;
    INSERT INTO steps (id, workspace_id, workflow_id, name) SELECT 's' || n, 'acme', 'flow', ''
        FROM generate_series(0, 99) n;
    INSERT INTO tasks (id, workspace_id, workflow_id, step_id, title)
        SELECT 'T' || n, 'acme', 'flow', 's' || n % 100, '' FROM generate_series(1, 20000) n;
    INSERT INTO seats (id, task_id, step_id, role, agent_profile_id)
        SELECT gen_random_uuid(), 'T' || n, 's' || (n + other) % 100, role,
               CASE role WHEN 'watcher' THEN 'busy' ELSE 'a' || (n + other) % 1000 END
        FROM generate_series(1, 20000) n, generate_series(0, 2) other,
             unnest(ARRAY['runner', 'reviewer', 'watcher']) role;
    INSERT INTO seats (id, task_id, step_id, role, agent_profile_id)
        SELECT gen_random_uuid(), NULL, 's' || n, 'reviewer', who
        FROM generate_series(0, 99) n, unnest(ARRAY['busy', 'a1', 'a2', 'a3']) who"""


@pytest.fixture(scope="module")
def large(make_database, template):
    """180,000 seats."""
    with large_office(make_database, template, MANY) as board:
        analyze(board)
        yield board


def sent_by(board, ask, *args):
    """Return what asking sends."""
    with statements(board.engine) as sent, autocommit(board.engine) as connection:
        ask(connection, *args)
    return sent


def asked(board, agent, task="T77"):
    """Return what the question sends."""
    return sent_by(board, capacity.retained, task, agent)


@pytest.mark.parametrize("step", ["start", "wait", "led"])
def test_it_is_one_statement(stage, step):
    """SES-1.2: both halves in one snapshot and in one round trip, whatever the answer; the terminator is one more."""
    stage.create()
    stage.enter(step=step)
    stage.add("reviewer")
    with statements(stage.engine) as sent:
        kept = stage.guard("ana")
    assert (kept["retained"], len(sent)) == ("seat", 1)
    with statements(stage.engine) as sent:
        stage.guard("bob")
    assert [sql.split()[0] for sql, _ in sent] == ["SELECT", "UPDATE"]


def test_it_locks_nothing_and_waits_for_nothing(stage):
    """SES-1.2: asked while another transaction holds the task and its seats, it answers from its own snapshot."""
    stage.create(assignee="ana")
    with stage.board.engine.connect() as other:
        other.execute(text("SELECT 1 FROM tasks FOR UPDATE"))
        other.execute(text("DELETE FROM seats"))
        assert stage.guard()["retained"] == "runner"
        other.rollback()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("agent", ["a1", "a77", "busy", "nobody"])
def test_it_reads_by_index_in_large_tables(large, kind, agent):
    """SES-1.2: of 180,000 seats only those of the task, or of its step's templates, are looked at."""
    [one] = asked(large, agent)
    plan = KINDS[kind](large.engine, *one)
    assert plan.scanned & TABLES == set()
    assert "pk_tasks" in plan.indexes


@pytest.mark.parametrize("agent", ["a1", "a77", "busy", "nobody"])
def test_it_touches_few_blocks(large, agent):
    """SES-1.2: an agent that sits everywhere is asked about as cheaply as one that sits nowhere."""
    [one] = asked(large, agent)
    assert custom(large.engine, *one).blocks <= 30


def test_the_slate_touches_few_blocks(large):
    """SES-2.2: nor does a task cost more than its own seats because others have theirs at the same step."""
    [one] = sent_by(large, slate.slate, "T77")
    plan = custom(large.engine, *one)
    assert (plan.scanned & TABLES, plan.blocks <= 30) == (set(), True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_was_never_analyzed(stage, kind):
    """SES-1.2: a fresh install plans against nothing: by index too."""
    stage.create(assignee="ana")
    for one in asked(stage.board, "ana", "T1"):
        assert KINDS[kind](stage.engine, *one).scanned & TABLES == set()
