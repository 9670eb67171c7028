"""Workers killed at every point between the change and its settling: the relay finishes it, once (PRO-6.2)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from office_tasks.faults import ENVIRONMENT
from office_tasks.producers.creation import create_task
from recovery.relay import relay_once
from tests.integration.faults import Fault, setting
from tests.nodes.engine import ROOT
from tests.nodes.waiting import until
from tests.support import T0

# What the killed worker held comes back after the relay is done, and soon enough for a test.
PATIENT = {"OFFICE_VISIBILITY_TIMEOUT": "16", "OFFICE_TIME_LIMIT": "15", "OFFICE_SOFT_TIME_LIMIT": "14"}
# Each stalls before the next, so that four children stand at four points at once.
POINTS = ("after_deciding", "before_deciding", "after_commit", "before_commit")
IDLE = (
    "SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction' AND application_name = 'office' "
    "AND datname = current_database()"
)
RELAY = """
import sys
from db.engine import make_engine
from recovery.relay import relay_once
relay_once(make_engine(sys.argv[1], session={"office.now": "2026-03-02T10:00:00Z"}), None)
"""


@pytest.fixture
def doomed(start_worker, caller, arm):
    """A worker with one child at each point, and the messages that they hold, by point."""
    gates = {point: arm("pause") for point in POINTS}
    env = {**PATIENT, **setting(*(gate.at(point) for point, gate in gates.items()))}
    worker = start_worker(concurrency=4, queues="admission", env=env)
    board = caller.board
    for point in POINTS:
        create_task(board.engine, f"c-{point}", "acme", "x", task_id=point, step_id="start", instant=T0)
    reached = {
        "after_deciding": lambda: board.count("runs") == 1,
        "before_deciding": lambda: board.count("mutations") == len(POINTS) + 2,
        "after_commit": lambda: board.count("mutations") == len(POINTS) + 3,
        "before_commit": lambda: board.rows(IDLE),
    }
    held = {}
    for point in POINTS:
        gates[point].once()
        held[point] = caller.send("assign_task", point, "ana")
        until(reached[point], what=f"a child at {point}")
    worker.gates = gates
    return worker, held


def outcomes(board):
    return {row["task_id"]: (row["state"], row["outcome"]) for row in board.wakes()}


def all_settled(board):
    return not board.rows("SELECT 1 FROM mutations WHERE settled_at IS NULL")


ADMITTED = dict.fromkeys(POINTS[:3], ("decided", "queued"))


@pytest.mark.office_worker(concurrency=1, queues="recovery", env=PATIENT)
def test_a_killed_workers_wakes_are_relayed_once(worker, beat, doomed, caller):
    """PRO-6.2, PRO-6.1, OPS-5: kill -9, then within 10 s all that committed is admitted; redelivered, nothing more."""
    victim, held = doomed
    board = caller.board
    victim.kill("SIGKILL")
    killed = datetime.now(UTC)
    until(lambda: all_settled(board), 10, "the relay settles what committed")
    assert outcomes(board) == ADMITTED
    assert all((row["decided_at"] - killed).total_seconds() < 10 for row in board.wakes())
    assert board.count("runs") == 3
    for gate in victim.gates.values():
        gate.off()
    victim.restart()
    done = {point: result.get(timeout=60) for point, result in held.items()}
    assert {point: each["generation"] for point, each in done.items()} == dict.fromkeys(POINTS, 1)
    assert {wake["outcome"] for each in done.values() for wake in each["wakes"]} == {"queued"}
    assert board.count("runs") == board.count("wakes") == 4
    assert board.count("mutations") == board.count("events") == 2 * len(POINTS)


@pytest.mark.office_worker(concurrency=1, queues="recovery", env=PATIENT)
def test_a_killed_workers_wakes_are_relayed_though_redis_was_lost(worker, beat, doomed, caller, broker):
    """PRO-6.2, PRO-6.5, OPS-5, C34: Redis dies with the worker and comes back empty: within 10 s all is admitted, once.

    What had not committed is lost with its message, and left no trace.
    """
    victim, _ = doomed
    board = caller.board
    victim.kill("SIGKILL")
    broker.kill("SIGKILL")
    broker.restart()
    back = datetime.now(UTC)
    assert caller.redis.keys("unacked*") == []
    until(lambda: all_settled(board), 20, "the relay settles what committed")
    assert outcomes(board) == ADMITTED
    assert all((row["decided_at"] - back).total_seconds() < 10 for row in board.wakes())
    until(lambda: not board.rows("SELECT 1 FROM events WHERE sent_at IS NULL"), 10, "the events are said")
    # What the relay had said before Redis was lost is lost with it; what it had not said by then is there.
    assert board.count("events") == 2 * len(POINTS) - 1
    assert (
        caller.redis.xlen("office:events")
        == board.rows("SELECT count(*) AS n FROM events WHERE sent_at > :back", back=back)[0]["n"]
    )
    assert board.count("runs") == 3
    assert board.rows("SELECT assignment_generation AS n FROM tasks WHERE id = 'before_commit'") == [{"n": 0}]


@pytest.fixture
def killed_relay(database_url, tmp_path):
    """Return a function that runs one pass, an hour after T0, in a process that is killed at its first such point."""

    def run(point):
        kill = Fault("kill", tmp_path / "kill")
        kill.once()
        done = subprocess.run(
            [sys.executable, "-c", RELAY, database_url],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), ENVIRONMENT: kill.at(point)},
            timeout=60, check=False, capture_output=True,
        )  # fmt: skip
        assert done.returncode == -signal.SIGKILL, done.stderr

    return run


@pytest.mark.parametrize("point", ["before_deciding", "after_deciding"])
def test_a_relay_that_is_killed_is_taken_over(board, leave_owed, at, killed_relay, point):
    """PRO-6.2, REC-3.4: kill -9 in the midst of its pass: the next ones go on, every wake once."""
    owed = {leave_owed(number) for number in range(1, 5)}
    killed_relay(point)
    assert board.count("runs") == (point == "after_deciding")
    assert [relay_once(at(hours=1, seconds=s), None)["settled"] for s in (1, 5)] == [3, 1]
    assert {row["id"] for row in board.wakes() if row["outcome"] == "queued"} == owed
    assert board.count("runs") == 4


@pytest.mark.parametrize("settled", [False, True])
def test_a_wake_that_takes_the_relay_with_it_holds_up_nobody(board, leave_owed, at, killed_relay, settled):
    """REC-3.1: the oldest kills whoever tries it: the next pass begins behind it."""
    leave_owed(1)
    healthy = leave_owed(2)
    if settled:
        board.execute("UPDATE mutations SET settled_at = committed_at, result = '{}'")
    killed_relay("before_deciding")
    relay_once(at(hours=1, seconds=1), None, batch=1)
    assert healthy in {row["id"] for row in board.wakes() if row["outcome"] == "queued"}
