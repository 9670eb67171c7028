"""R08: every question of admission is answered by the index that was made for it, in a large table and a new one."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest
from sqlalchemy import text

from db.facts import read
from office_tasks.admission import admit
from tests.db.plans import KINDS, analyze, custom, fill, indexes, large_office, scanned, statements
from tests.support import T0, after

# Gates 1 to 5, the key, the merge target, the wake itself.
INDEXES = {"pk_agents", "uq_runs_idempotency_key", "ix_runs_mergeable", "ix_runs_assignments", "pk_wakes"}
GROWS = {"runs", "wakes", "tasks", "mutations", "events"}

QUESTIONS = ("duplicate_of", "merge_into", "assignments", "wake_state", "agent_status", "paused")
PARAMS = {
    "instant": T0,
    "wake_id": "wake-77",
    "agent_profile_id": "agent-420",
    "reason": "task_assigned",
    "key": "key-420",
    "task_id": "T420",
    "task_scope": "T420",
    "coalesce_window": dt.timedelta(seconds=5),
    "duplicate_lookback": dt.timedelta(hours=24),
    "allowance_window": dt.timedelta(minutes=10),
}

MANY_AGENTS = """
    INSERT INTO agents (id, workspace_id, name) SELECT 'agent-' || n, 'acme', '' FROM generate_series(0, 999) n"""
MANY_RUNS = """
    INSERT INTO runs (id, agent_profile_id, reason, payload, idempotency_key, status, requested_at, finished_at)
    SELECT CAST(lpad(to_hex(n), 32, '0') AS uuid), 'agent-' || n % 1000,
           (ARRAY['task_assigned', 'task_comment'])[1 + n % 2],
           jsonb_build_object('task_id', 'T' || n % 20000, 'actor_type', (ARRAY['agent', 'user'])[1 + n % 3 % 2]),
           'key-' || n, CASE WHEN n % 10 = 0 THEN 'queued' ELSE 'finished' END,
           :at - n * interval '1 s', CASE WHEN n % 10 = 0 THEN NULL ELSE :at END
    FROM generate_series(1, 300000) n"""
MANY_WAKES = """
    INSERT INTO wakes (id, reason, agent_profile_id, payload, key, producer, requested_at, state, outcome, run_id,
                       decided_at)
    SELECT 'wake-' || row_number() OVER (), reason, agent_profile_id, payload, idempotency_key, 'test', requested_at,
           'decided', 'queued', id, requested_at FROM runs LIMIT 50000"""


@pytest.fixture(scope="module")
def large(make_database, template):
    """300,000 runs of 1,000 agents, 30,000 of them queued, while a transaction has been open since before."""
    with large_office(make_database, template) as board, board.engine.connect() as old:
        old.execute(text("SELECT count(*) FROM runs"))
        fill(board, MANY_AGENTS, MANY_RUNS, MANY_WAKES)
        analyze(board)
        yield board


def asked(board):
    """Return every statement that admission sends for an agent's keyed assignment, whatever becomes of it."""
    wake = {"task": "T42", "by": "agent"}
    with statements(board.engine) as sent:
        answers = [
            board.assigned(after(hours=1), agent="ana", key="one", **wake),
            board.assigned(after(hours=1), agent="ana", key="one", **wake),
            board.assigned(after(hours=1), agent="ana", key="two", **wake),
            *[board.assigned(after(hours=1, seconds=10 * n), agent="bob", key=f"more-{n}", **wake) for n in range(6)],
            board.assigned(after(hours=50), agent="bob", task="T43", key="one"),
            board.ask(agent="nobody"),
        ]
    outcomes = [f"{answer.outcome}-{answer.gate}" for answer in answers]
    return sent, outcomes


OUTCOMES = {
    "queued-insert",
    "deduped-recent_duplicate",
    "coalesced-coalesce",
    "rate_limited-assignment_allowance",
    "deduped-insert",
    "none-agent_status",
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_question_has_its_index_in_a_large_table(large, kind):
    """R08: 300,000 rows: each question by its own index, no sequential scan of what grows, in both kinds of plan."""
    large.execute("DELETE FROM wakes WHERE producer = 'test' AND id NOT LIKE 'wake-%'")
    large.execute("DELETE FROM runs WHERE idempotency_key NOT LIKE 'key-%'")
    sent, outcomes = asked(large)

    assert set(outcomes) >= OUTCOMES
    plans = [KINDS[kind](large.engine, *one) for one in sent]
    assert scanned(plans, GROWS) == []
    assert indexes(plans) >= INDEXES
    first = next(plan for plan in plans if "merge_into" in plan.statement and "assignments" in plan.statement)
    assert first.indexes >= INDEXES, "the common wake's one statement uses all of them"


def test_the_reads_touch_few_blocks(large):
    """R08: beside an old open transaction, what a gate by gate admission reads stays within 40 blocks a statement."""
    with statements(large.engine) as sent, large.engine.connect() as connection:
        for question in QUESTIONS:
            read(connection, (question,), PARAMS)
        read(connection, QUESTIONS, PARAMS)

    blocks = [custom(large.engine, *one).blocks for one in sent]
    assert len(blocks) == 7
    assert max(blocks[:6]) <= 40
    assert blocks[6] <= 100


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_was_never_analyzed(board, kind):
    """R08: a fresh install plans against nothing, and may keep a prepared plan: it uses the indexes too."""
    sent, outcomes = asked(board)

    assert set(outcomes) >= OUTCOMES
    assert board.rows("SELECT 1 FROM pg_stat_user_tables WHERE last_analyze IS NOT NULL") == []
    plans = [KINDS[kind](board.engine, *one) for one in sent]
    assert scanned(plans, GROWS) == []


def test_an_owed_wake_is_found_by_its_key(large):
    """R08: deciding an owed wake locks its row by the primary key."""
    wake = replace(large.wake(wake_id="wake-1"), owed=True)
    with statements(large.engine) as sent:
        admit(large.engine, wake, instant=T0)

    for one in sent:
        plan = custom(large.engine, *one)
        assert plan.scanned & GROWS == frozenset()
        assert "pk_wakes" in plan.indexes
