"""The purge: what is past its retention goes, a bounded batch at a time; what is still to be done stays."""

from __future__ import annotations

import datetime as dt
import os
import signal
import subprocess
import sys
from threading import Barrier

import pytest

from office_tasks import admin
from office_tasks.faults import ENVIRONMENT
from office_tasks.ids import new_id
from office_tasks.producers.assignments import assign_task
from recovery.purge import Bounds, purge_once
from recovery.sweep import sweep_once
from tests.admission.rows import store_run
from tests.faults.waits import holding, in_background, until_blocked
from tests.integration.faults import Fault
from tests.nodes.engine import ROOT
from tests.support import T0, after

RUNS_FOR, HISTORY_FOR = dt.timedelta(days=90), dt.timedelta(days=14)
# Whoever deletes a row waits until the test has let go.
WAIT = """
    CREATE FUNCTION wait_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM pg_advisory_xact_lock(7);
        RETURN OLD;
    END $$;
    CREATE TRIGGER wait BEFORE DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION wait_{table}()"""
HISTORY = """
    WITH mutation AS (
        INSERT INTO mutations (id, kind, actor_type, facts, result, committed_at, settled_at)
        SELECT :prefix || n, 'test', 'user', '{}', '{}', :at, :at FROM generate_series(1, :count) n RETURNING *),
    wake AS (
        INSERT INTO wakes (id, mutation_id, reason, agent_profile_id, payload, key, producer, requested_at, state,
                           decided_at)
        SELECT id, id, 'r', 'ana', '{}', 'k', 'test', settled_at, 'superseded', settled_at FROM mutation),
    event AS (
        INSERT INTO events (mutation_id, task_id, type, changed, created_at, sent_at)
        SELECT id, 'T', 't', '{}', settled_at, settled_at FROM mutation)
    INSERT INTO deliveries (id, task_name, deliveries, last_at) SELECT id, 'test', 2, settled_at FROM mutation"""
NOTHING = {"runs": 0, "wakes": 0, "mutations": 0, "events": 0, "deliveries": 0, "more": False}


def purge(engine, **bounds):
    return purge_once(engine, RUNS_FOR, HISTORY_FOR, Bounds(**bounds))


def ended(board, count, at, *, agent="ana", status="finished", gap=dt.timedelta(seconds=1), task=None):
    """Write runs that ended at `at` and, one gap after the other, later; return their ids in that order."""
    ids = [new_id() for _ in range(count)]
    board.execute(
        "INSERT INTO runs (id, agent_profile_id, reason, payload, status, requested_at, finished_at) "
        "SELECT id, :agent, 'task_assigned', jsonb_build_object('task_id', CAST(:task AS text)), :status, "
        "CAST(:at AS timestamptz) + (n - 1) * CAST(:gap AS interval), "
        "CAST(:at AS timestamptz) + (n - 1) * CAST(:gap AS interval) "
        "FROM unnest(CAST(:ids AS uuid[])) WITH ORDINALITY AS r (id, n)",
        ids=ids, agent=agent, status=status, at=at, gap=gap, task=task,
    )  # fmt: skip
    return ids


def left(board, agent="ana"):
    return {row["id"] for row in board.rows("SELECT id FROM runs WHERE agent_profile_id = :agent", agent=agent)}


def store_history(board, count, at, prefix="old"):
    """Write, of each ledger, rows that were over at that instant."""
    board.execute(HISTORY, prefix=prefix, count=count, at=at)


def ids(board, table):
    return {row["id"] for row in board.rows(f"SELECT id FROM {table}")}


@pytest.mark.parametrize("status", ["finished", "failed", "cancelled"])
def test_runs_past_retention_go(board, at, status):
    """REC-3.2: each kind of end; a run that ended just within the retention stays."""
    old = ended(board, 3, after(days=-90, seconds=-3), status=status)
    young = ended(board, 20, T0 - RUNS_FOR, status=status)
    assert purge(at()) == {**NOTHING, "runs": 3}
    assert left(board) == set(young)
    assert not left(board) & set(old)


def test_the_newest_twenty_of_each_agent_stay(board, at):
    """REC-3.2: however old, whether or not the agent is still there."""
    kept = set()
    for agent in ("ana", "gone", "zoe"):
        runs = ended(board, 25, after(days=-400), agent=agent)
        kept |= set(runs[-20:])
    few = ended(board, 7, after(days=-400), agent="few")
    assert purge(at(), agents=2)["runs"] == 15
    assert ids(board, "runs") == kept | set(few)
    assert purge(at()) == NOTHING


def test_ends_at_the_same_instant_have_an_order(board, at):
    """REC-3.2: of thirty that ended at once, twenty stay: those with the highest ids."""
    runs = ended(board, 30, after(days=-400), gap=dt.timedelta(0))
    assert purge(at(), batch=4) == {**NOTHING, "runs": 10}
    assert left(board) == set(sorted(runs)[10:])


def test_a_tie_at_the_twentieth_place(board, at):
    """REC-3.2: ten newer ones and thirty that ended at one older instant leave the ten and ten of the thirty."""
    tied = ended(board, 30, after(days=-400), gap=dt.timedelta(0))
    newer = ended(board, 10, after(days=-300))
    assert purge(at())["runs"] == 20
    assert left(board) == {*sorted(tied)[20:], *newer}


def test_what_is_still_to_be_done_stays(board, at):
    """REC-3.2: queued and claimed runs, owed wakes and their mutations, unsettled mutations, unsent events."""
    store_history(board, 2, after(days=-900))
    ended(board, 21, after(days=-900))
    waiting = {store_run(board, after(days=-900), status=status) for status in ("queued", "claimed")}
    board.execute("UPDATE wakes SET state = 'owed', decided_at = NULL WHERE id = 'old1'")
    board.execute("UPDATE mutations SET settled_at = NULL, result = NULL WHERE id = 'old2'")
    board.execute("UPDATE events SET sent_at = NULL")
    assert purge(at()) == {**NOTHING, "runs": 1, "deliveries": 2}
    assert waiting < left(board)
    assert ids(board, "wakes") == {"old1", "old2"}, "the answer of an unsettled mutation is made from its wakes"
    assert ids(board, "mutations") == {"old1", "old2"}


def test_history_past_its_retention_goes(board, at):
    """REC-3.2: wakes, mutations, events and deliveries have a retention of their own, to the instant."""
    store_history(board, 3, T0 - HISTORY_FOR - dt.timedelta(microseconds=1))
    store_history(board, 2, T0 - HISTORY_FOR, "young")
    assert purge(at()) == {"runs": 0, "wakes": 3, "mutations": 3, "events": 3, "deliveries": 3, "more": False}
    for table in ("wakes", "mutations", "deliveries"):
        assert ids(board, table) == {"young1", "young2"}
    assert board.count("events") == 2


def test_a_mutation_goes_once_its_last_wake_was_decided(board, at):
    """REC-3.2: it was settled with a wake owed; nothing of it is touched until that is decided and old too."""
    store_history(board, 1, after(days=-900))
    board.execute("UPDATE wakes SET state = 'owed', decided_at = NULL")
    assert purge(at())["mutations"] == 0
    board.execute("UPDATE wakes SET state = 'superseded', decided_at = :at", at=after(days=-1))
    assert (purge(at())["mutations"], ids(board, "wakes")) == (1, {"old1"})


def test_a_replay_keeps_what_it_goes_on_from(board, at):
    """REC-3.2, OPS-1.5: its rows bear the instants of its file, and name what it did before."""
    admin.create_workspace(board.engine, "replay-1", workflow_id="replay-1", is_replay=True)
    admin.create_agent(board.engine, "replay-1", "robo")
    admin.create_step(board.engine, "replay-1", "replay-1", workflow_id="replay-1", auto_start=True)
    board.execute(
        "INSERT INTO tasks (id, workspace_id, title, status, workflow_id, step_id, created_at) "
        "VALUES ('RT', 'replay-1', 'x', 'todo', 'replay-1', 'replay-1', :at)", at=after(days=-900),
    )  # fmt: skip
    assign_task(board.engine, "replayed", "RT", "robo", instant=after(days=-900))
    purge(at())
    assert (ids(board, "mutations"), len(board.wakes())) == ({"replayed"}, 1)


def test_a_tick_is_bounded_and_says_so(board, at):
    """REC-3.2: two transactions of three rows a table; the next ticks do the rest, oldest first."""
    store_history(board, 8, after(days=-100))
    runs = ended(board, 28, after(days=-400))
    done = [purge(at(), batch=3, batches=2) for _ in range(3)]
    assert [tick["more"] for tick in done] == [True, False, False]
    for table in ("runs", "wakes", "mutations", "events", "deliveries"):
        assert [tick[table] for tick in done] == [6, 2, 0]
    assert left(board) == set(runs[8:])


def test_many_agents_share_a_tick(board, at):
    """REC-3.2: looking at agents without anything to delete costs none of the bound."""
    for number in range(12):
        ended(board, 20, after(days=-400), agent=f"agent-{number:02}")
    ended(board, 23, after(days=-400), agent="zoe")
    assert purge(at(), batches=1, agents=2)["runs"] == 3


def test_two_purges_at_once(board, at):
    """REC-3.4: every row is deleted, and counted, by one of them, and neither waits for the other."""
    store_history(board, 500, after(days=-100))
    ended(board, 520, after(days=-400))
    start = Barrier(4)

    def racing(engine):
        start.wait()
        return purge(engine, batch=7, batches=1000)

    with in_background() as go:
        done = [call.result(60) for call in [go(racing, at()) for _ in range(4)]]
    assert sum(tick["runs"] for tick in done) + purge(at())["runs"] == 500
    for table in ("wakes", "mutations", "events", "deliveries"):
        assert sum(tick[table] for tick in done) == 500
        assert board.count(table) == 0
    assert board.count("runs") == 20


def test_a_row_that_somebody_holds_is_left_to_the_next_tick(board, at):
    """REC-3.4: the purge waits for nobody."""
    store_history(board, 3, after(days=-100))
    with holding(board.engine, "SELECT 1 FROM wakes WHERE id = 'old2' FOR UPDATE"):
        assert purge(at())["wakes"] == 2
    assert purge(at())["wakes"] == 1


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("runs", "UPDATE runs SET status = 'queued', finished_at = NULL WHERE id = :second"),
        ("wakes", "UPDATE wakes SET state = 'owed', decided_at = NULL WHERE id = :second"),
        ("mutations", "UPDATE mutations SET settled_at = NULL, result = NULL WHERE id = :second"),
        ("events", "UPDATE events SET sent_at = NULL WHERE id = :second"),
        ("deliveries", "UPDATE deliveries SET last_at = office_now() WHERE id = :second"),
    ],
)
def test_what_changes_under_the_purge_is_looked_at_again(board, at, table, change):
    """REC-3.2: while it waits at its first row, the second, which its snapshot saw as over, is taken up again."""
    store_history(board, 2, after(days=-100))
    ended(board, 22, after(days=-400))
    order = "finished_at" if table == "runs" else "id"
    first, second = [row["id"] for row in board.rows(f"SELECT id FROM {table} ORDER BY {order} LIMIT 2")]
    board.execute(WAIT.format(table=table))
    with in_background() as go, holding(board.engine, "SELECT pg_advisory_xact_lock(7)") as held:
        call = go(purge, at())
        until_blocked(board.engine)
        board.execute(change, second=second)
        held.commit()
        assert call.result(30)[table] == 1
    assert (first in ids(board, table), second in ids(board, table)) == (False, True)


KILLED = """
import datetime as dt, sys
from db.engine import make_engine
from recovery.purge import Bounds, purge_once
engine = make_engine(sys.argv[1], session={"office.now": sys.argv[2]})
purge_once(engine, dt.timedelta(days=90), dt.timedelta(days=14), Bounds(batch=2))
"""


def test_a_purge_that_is_killed_leaves_whole_batches(board, database_url, at, tmp_path):
    """REC-3.4: killed between a delete and its commit: that batch stands, and the next tick does it all."""
    store_history(board, 5, after(days=-100))
    ended(board, 25, after(days=-400))
    fault = Fault("kill", tmp_path / "kill")
    fault.once()
    environment = {**os.environ, ENVIRONMENT: fault.at("history_deleted"), "PYTHONPATH": str(ROOT)}
    died = subprocess.run(
        [sys.executable, "-c", KILLED, database_url, T0.isoformat()],
        env=environment, cwd=ROOT, check=False, timeout=60,
    )  # fmt: skip
    assert died.returncode == -signal.SIGKILL
    assert board.count("runs") == 25
    assert purge(at()) == {"runs": 5, "wakes": 5, "mutations": 5, "events": 5, "deliveries": 5, "more": False}


def test_a_started_task_never_looks_unstarted(board, at):
    """REC-3.3: its only run finished, and went; the task is older than any lookback, and is not woken."""
    board.execute("UPDATE workspaces SET recovery_lookback_hours = 720")
    created = after(days=-31, seconds=-1)
    board.execute(
        "INSERT INTO tasks (id, workspace_id, title, status, workflow_id, step_id, created_at, assignment_generation) "
        "VALUES ('T1', 'acme', 'x', 'todo', 'flow', 'start', :at, 1)", at=created,
    )  # fmt: skip
    board.execute(
        "INSERT INTO seats (id, task_id, step_id, role, agent_profile_id) "
        "VALUES (gen_random_uuid(), 'T1', 'start', 'runner', 'ana')"
    )
    ended(board, 1, created, task="T1")
    ended(board, 20, T0)
    assert purge_once(at(), dt.timedelta(days=31), HISTORY_FOR)["runs"] == 1
    assert sweep_once(at(), str(new_id()))["candidates"] == 0
    board.execute("UPDATE tasks SET created_at = :at", at=after(days=-29))
    assert sweep_once(at(), str(new_id()))["candidates"] == 1, "the run was what held the sweep back"
