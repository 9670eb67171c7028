"""Eight claimers over the runs of two hundred agents: each once, none over its limit, in order (REC-2.2)."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.execution.crowd import Log, execute_all, most_at_once
from tests.support import T0

QUEUED, AGENTS, CLAIMERS = 10_000, 200, 8

# Six hundred at one instant, three of each agent, so that the id decides; limits of 1, 2 and 3, and none, which is 1.
FILL_AGENTS = """
    INSERT INTO agents (id, workspace_id, name, max_concurrent_sessions)
    SELECT 'agent-' || n, 'acme', '', nullif(n % 4, 0) FROM generate_series(0, :agents - 1) n"""
FILL_RUNS = """
    INSERT INTO runs (id, agent_profile_id, reason, payload, requested_at)
    SELECT gen_random_uuid(), 'agent-' || (n * 7919) % :agents, 'manual_resume', '{}',
           CAST(:at AS timestamptz) + n / 600 * interval '1 s' FROM generate_series(1, :queued) n"""


@pytest.fixture
def crowded(board, make_test_engine):
    """The office with its line of runs, and eight engines of a connection for the claimer and one for the lease."""
    board.execute(FILL_AGENTS, agents=AGENTS)
    board.execute(FILL_RUNS, agents=AGENTS, queued=QUEUED, at=T0)
    with board.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE runs, agents")
    return [make_test_engine(pool_size=2) for _ in range(CLAIMERS)]


@pytest.mark.timeout(600)
def test_every_run_once_no_agent_over_its_limit_and_each_in_order(board, crowded, make_test_engine):
    """REC-2.1, REC-2.2, 8-engineering 1: from a log of start and stop pairs, and from what each claim wrote."""
    log = Log(make_test_engine(pool_size=CLAIMERS))
    waiting = "SELECT EXISTS (SELECT FROM runs WHERE status = 'queued') AS waits"
    results = execute_all(crowded, log, lambda: board.rows(waiting)[0]["waits"])

    assert Counter(results) == {"finished": QUEUED}
    runs = board.rows("SELECT * FROM runs ORDER BY requested_at, id")
    assert {(run["status"], run["attempt"]) for run in runs} == {("finished", 1)}
    for starts in (True, False):
        counted = Counter(entry.run_id for entry in log.entries if entry.starts is starts)
        assert counted == Counter(run["id"] for run in runs)
    _within_limits(board, log)
    _in_order(runs)


def _within_limits(board, log):
    rows = board.rows("SELECT id, greatest(coalesce(max_concurrent_sessions, 1), 1) AS most FROM agents")
    limits = {row["id"]: row["most"] for row in rows}
    seen = most_at_once(log.entries)
    assert all(seen[agent] <= limits[agent] for agent in seen)
    assert all(1 <= entry.busy <= limits[entry.agent] for entry in log.entries if not entry.starts)
    assert len(seen) == AGENTS


def _in_order(runs):
    """An agent's claims exclude one another: the instants that they wrote are in the order of its line."""
    claimed = {}
    for run in runs:
        claimed.setdefault(run["agent_profile_id"], []).append(run["claimed_at"])
    assert all(instants == sorted(instants) for instants in claimed.values())
