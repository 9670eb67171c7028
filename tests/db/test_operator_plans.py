"""R08: what `office status` and `office why` ask is bounded in a large office, and read by index in a new one."""

from __future__ import annotations

import pytest

from db import explaining, gauges, status, unstarted
from db.engine import autocommit
from tests.db.plans import KINDS, analyze, custom, indexes, large_office, scanned, statements

GROWS = {"runs", "wakes", "mutations", "events", "deliveries", "tasks"}
ROWS = 200_000
# A day's wakes, a twelfth of them in the last hour; of the runs 2,000 wait and 200 are executed.
MANY = (
    """
    INSERT INTO tasks (id, workspace_id, title, step_id, workflow_id, created_at)
    SELECT 'T' || n, 'acme', '', 'start', 'flow', :at FROM generate_series(0, 1999) n""",
    """
    INSERT INTO runs (id, agent_profile_id, reason, payload, status, requested_at, finished_at, lease_token,
                      lease_expires_at, claimed_at, attempt)
    SELECT CAST(lpad(to_hex(n), 32, '0') AS uuid), 'ana', 'r' || n % 7, jsonb_build_object('task_id', 'T' || n % 2000),
           status, :at - n * interval '400 ms', CASE WHEN status = 'finished' THEN :at END,
           CASE WHEN status = 'claimed' THEN gen_random_uuid() END,
           CASE WHEN status = 'claimed' THEN :at + (n % 2 * 2 - 1) * interval '1 min' END, :at, 1
    FROM (SELECT n, CASE WHEN n % 1000 = 0 THEN 'claimed' WHEN n % 100 = 1 THEN 'queued' ELSE 'finished' END AS status
          FROM generate_series(1, :rows) n) numbered""",
    """
    INSERT INTO wakes (id, mutation_id, reason, agent_profile_id, payload, keyless_cause, producer, requested_at, state,
                       outcome, run_id, decided_at, attempts)
    SELECT 'w' || n, 'm' || n, 'r' || n % 7, 'ana', jsonb_build_object('task_id', 'T' || n % 2000), 'by_design',
           'test', :at - n * interval '400 ms', CASE WHEN n % 100 = 0 THEN 'owed' ELSE 'decided' END,
           CASE WHEN n % 100 > 0 THEN 'queued' END,
           CASE WHEN n % 100 > 0 THEN CAST(lpad(to_hex(n), 32, '0') AS uuid) END,
           CASE WHEN n % 100 > 0 THEN :at - n * interval '400 ms' END, n % 9
    FROM generate_series(1, :rows) n""",
    """
    INSERT INTO mutations (id, kind, task_id, actor_type, facts, result, committed_at, settled_at)
    SELECT 'm' || n, 'test', 'T' || n % 2000, 'user', '{}',
           jsonb_build_object('session', jsonb_build_object('retained', 'seat')), :at, :at - n * interval '400 ms'
    FROM generate_series(1, :rows) n""",
    """
    INSERT INTO events (mutation_id, task_id, type, changed, created_at, sent_at)
    SELECT 'm' || n, 'T1', 'test', ARRAY[]::text[], :at, :at FROM generate_series(1, :rows) n""",
)


@pytest.fixture(scope="module")
def large(make_database, template):
    """200,000 runs, wakes, mutations and events of 2,000 tasks, analyzed; it is T0 there."""
    with large_office(make_database, template, *MANY, rows=ROWS) as board:
        analyze(board)
        yield board


def look(connection):
    return status.read(connection), gauges.read(connection)


def explain(connection):
    found = explaining.wakes_of(connection, "task", "T7")
    run = next(row["run_id"] for row in found if row["run_id"])
    return (
        explaining.kind_of(connection, "T7"), found, explaining.wakes_of(connection, "run", str(run)),
        explaining.wakes_of(connection, "wake", "w7"), explaining.runs(connection, [run]),
        explaining.runs_of_task(connection, "T7"), explaining.open_blockers(connection, "T7"),
        unstarted.examine(connection, "T7"),
    )  # fmt: skip


def asked(board, work):
    with statements(board.engine) as sent, autocommit(board.engine) as connection:
        answer = work(connection)
    return answer, [one for one in sent if " FROM " in one[0]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("work", [look, explain])
def test_each_question_has_its_index_in_a_large_office(large, work, kind):
    _, sent = asked(large, work)
    plans = [KINDS[kind](large.engine, *one) for one in sent]
    assert scanned(plans, GROWS) == []
    assert indexes(plans) >= ({"ix_wakes_decided_at", "ix_wakes_owed", "ix_mutations_settled_at"} if work is look else
                              {"ix_wakes_decided_at", "ix_wakes_task_id", "ix_runs_assignments"})  # fmt: skip


def test_the_state_of_a_large_office_is_two_round_trips_that_read_the_last_hour(large):
    """Of a day's 200,000 wakes and mutations the 9,000 of the last hour, and what is open: a few blocks for each."""
    (found, gauged), sent = asked(large, look)
    assert len(sent) == 2
    assert (gauged.owed, found["stale"]) == (2_000, 200)
    assert sum(row["wakes"] for row in found["decided"]) == 8_910
    assert found["kept"] == [{"retained": "seat", "sessions": 8_999}]
    assert len(found["struggling"]) == status.NAMED
    assert max(custom(large.engine, *one).blocks for one in sent) < 15_000


def test_what_explains_a_task_reads_little(large):
    """Twenty wakes and runs of one task, of 200,000: what waits in the agent's line before a run is counted too."""
    (_, found, of_run, *_), sent = asked(large, explain)
    assert (len(found), len(of_run)) == (explaining.SHOWN, 1)
    plans = [custom(large.engine, *one) for one in sent]
    assert max(plan.blocks for plan in plans) < 2_500


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_office_is_not_read_as_a_whole_either(board, kind):
    """What was never analyzed."""
    board.ask(payload={"task_id": "T7"})
    for work in (look, explain):
        _, sent = asked(board, work)
        assert scanned([KINDS[kind](board.engine, *one) for one in sent], GROWS) == []
