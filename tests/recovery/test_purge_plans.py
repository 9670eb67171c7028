"""The purge's statements are answered by indexes, in a large table and in a new one, and read only what they delete."""

from __future__ import annotations

import datetime as dt

import pytest

from db import history
from db.engine import make_engine
from recovery.purge import Bounds, purge_once
from tests.db.plans import KINDS, analyze, large_office, scanned, statements

INDEXES = {
    "runs": "ix_runs_finished",
    "wakes": "ix_wakes_decided_at",
    "mutations": "ix_mutations_settled_at",
    "events": "ix_events_sent_at",
    "deliveries": "ix_deliveries_last_at",
}
GROWS = {"runs", "wakes", "tasks", "mutations", "events", "deliveries"}
ROWS = 200_000
MANY = (
    """
    INSERT INTO runs (id, agent_profile_id, reason, payload, status, requested_at, finished_at)
    SELECT CAST(lpad(to_hex(n), 32, '0') AS uuid), 'agent-' || n % 1000, 'r', '{}',
           (ARRAY['finished', 'failed', 'queued'])[1 + n % 3], :at - n * interval '1 min',
           CASE WHEN n % 3 < 2 THEN :at - n * interval '1 min' END
    FROM generate_series(1, :rows) n""",
    """
    INSERT INTO mutations (id, kind, actor_type, facts, result, committed_at, settled_at)
    SELECT 'm' || n, 'test', 'user', '{}', '{}', :at - n * interval '1 min', :at - n * interval '1 min'
    FROM generate_series(1, :rows) n""",
    """
    INSERT INTO wakes (id, mutation_id, reason, agent_profile_id, payload, key, producer, requested_at, state,
                       decided_at)
    SELECT 'w' || n, 'm' || n, 'r', 'ana', '{}', 'k', 'test', settled_at, 'superseded', settled_at
    FROM (SELECT row_number() OVER () AS n, settled_at FROM mutations) m""",
    """
    INSERT INTO events (mutation_id, task_id, type, changed, created_at, sent_at)
    SELECT id, 'T', 't', '{}', settled_at, settled_at FROM mutations""",
    """
    INSERT INTO deliveries (id, task_name, deliveries, last_at) SELECT id, 'test', 2, settled_at FROM mutations""",
)


# What a whole pass asks: which agents, one batch of each table's, and then no more.
STATEMENTS = 6


@pytest.fixture(scope="module")
def large(make_database, template):
    """200,000 rows of everything, a minute apart, without statistics at first."""
    with large_office(make_database, template, *MANY, rows=ROWS) as board:
        yield board


def plans_of(board, kind):
    """Return what a pass of one batch a table deleted, and the plans that the purge has made for its statements."""
    with statements(board.engine) as sent:
        done = purge_once(board.engine, dt.timedelta(days=90), dt.timedelta(days=14), Bounds(batches=1))
    asked = {statement: parameters for statement, parameters in sent if " FROM " in statement}
    explaining = make_engine(board.engine.url.render_as_string(False), session=dict.fromkeys(history.OFF, "off"))
    plans = [KINDS[kind](explaining, *one) for one in asked.items()]
    explaining.dispose()
    return done, plans


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("analyzed", [False, True], ids=["without statistics", "analyzed"])
def test_each_statement_walks_its_index(large, analyzed, kind):
    """REC-3.2, R08: 200,000 rows: oldest first along the index that was made for it, each doomed row by its key."""
    if analyzed:
        analyze(large)
    done, plans = plans_of(large, kind)
    assert done == {**dict.fromkeys(INDEXES, 1000), "more": True}
    assert (len(plans), scanned(plans, GROWS)) == (STATEMENTS, [])
    for table, index in INDEXES.items():
        [plan] = [plan for plan in plans if f"DELETE FROM {table} " in plan.statement]
        assert {index, f"pk_{table}"} <= plan.indexes
        assert not plan.kinds & {"Sort", "Bitmap Heap Scan", "Hash Join", "Merge Join"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_table_is_not_read_as_a_whole_either(board, kind):
    """REC-3.2, R08: a plan that was made while a table was empty is kept, and must do when it has grown."""
    _, plans = plans_of(board, kind)
    assert scanned(plans, GROWS) == []
