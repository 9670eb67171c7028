"""Two sweeps at once, a slow one beside quick ones, and one that is killed: each task is woken once (REC-1.8, C19)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from threading import Event

import pytest
from sqlalchemy import event, text

from office_tasks.ids import new_id
from recovery.relay import relay_once
from recovery.sweep import CAP, sweep_once
from tests.faults.processes import race
from tests.faults.waits import in_background
from tests.integration.faults import Fault, setting
from tests.nodes.engine import ROOT
from tests.nodes.verbs import wait_exit
from tests.nodes.waiting import until
from tests.recovery.racing import sweep
from tests.recovery.virtual import VirtualTime
from tests.support import after


def woken(board):
    return sorted(run["task_id"] for run in board.runs())


def test_two_processes_at_the_same_instant(board, unstarted, database_url):
    """C19 (a), REC-1.8: five tasks, two sweeps: five runs, one a task; the loser says that the lock was taken."""
    tasks = [unstarted(f"T{number}") for number in range(5)]
    for round_ in range(4):
        now = after(minutes=1, hours=round_).isoformat()
        done = race(2, sweep, database_url, now)
        assert sum(each["dispatched"] for each in done) == len(tasks)
        assert woken(board) == tasks
        board.execute("DELETE FROM runs")


def test_a_tick_that_cannot_get_the_lock_says_so(board, unstarted, tick):
    """REC-1.8: and touches nothing."""
    unstarted("T1")
    with board.engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('office.recovery'))"))
        assert tick(minutes=1)["lock"] == "taken"
    assert (woken(board), tick(minutes=1)["dispatched"]) == ([], 1)


class Slow:
    """An engine whose admissions wait at the door, with all that was taken in hand, until they are let through."""

    def __init__(self, engine):
        self.engine = engine
        self.waiting, self._go = Event(), Event()
        event.listen(engine, "before_cursor_execute", self._hold)

    def let_through(self):
        self._go.set()

    def hold_again(self):
        self._go.clear()
        self.waiting.clear()

    def _hold(self, _connection, _cursor, statement, *_):
        if "INSERT INTO runs" in statement:
            self.waiting.set()
            assert self._go.wait(60)


@pytest.mark.parametrize("relayed", [False, True], ids=["alone", "beside_the_relay"])
def test_an_hour_of_two_beats_and_a_slow_tick(board, unstarted, make_test_engine, relayed):
    """REC-1.8, C19: two sweeps a minute for an hour, one of them stuck for minutes with tasks taken and not woken.

    Six new tasks a minute wait for it too; a run that starts succeeds in the next minute.
    """
    time = VirtualTime()
    quick, other, slow = (
        time.rule(make_test_engine()),
        time.rule(make_test_engine()),
        Slow(time.rule(make_test_engine())),
    )
    tasks, stuck = [], None
    with in_background() as start:
        for minute in range(60):
            time.move(minutes=minute)
            board.execute("UPDATE runs SET status = 'finished', finished_at = :now", now=time.now)
            tasks += [unstarted(f"T{minute}-{number}", created=time.now) for number in range(6)]
            if stuck is None:
                stuck = start(sweep_once, slow.engine, f"slow-{minute}")
                assert slow.waiting.wait(30), "five are taken, and not woken"
            one, two = start(sweep_once, quick, str(new_id())), start(sweep_once, other, str(new_id()))
            assert one.result(30)["dispatched"] + two.result(30)["dispatched"] > 0
            if relayed and minute % 5 == 2:
                relay_once(quick, None)
            if minute % 5 == 4:
                slow.let_through()
                assert stuck.result(30)["dispatched"] == CAP
                stuck = slow.hold_again()
        slow.let_through()
    while sweep_once(quick, str(new_id()))["dispatched"]:
        pass
    assert woken(board) == sorted(tasks), "each once"
    assert board.rows("SELECT task_id FROM wakes GROUP BY task_id HAVING count(*) > 1") == []


def test_one_that_succeeded_is_never_swept_again(board, unstarted, make_test_engine):
    """REC-1.1: it stays `todo`, as its handler may have left it, for a day and more."""
    board.execute("UPDATE workspaces SET recovery_lookback_hours = 720")
    unstarted("T1")
    time = VirtualTime()
    engine = time.rule(make_test_engine())
    assert sweep_once(engine, str(new_id()))["dispatched"] == 1
    board.execute("UPDATE runs SET status = 'finished', finished_at = :at", at=time.now)
    for hour in range(48):
        time.move(hours=hour)
        assert sweep_once(engine, str(new_id()))["candidates"] == 0


SWEEP = """
import sys
from db.engine import make_engine
from recovery.sweep import sweep_once
print(sweep_once(make_engine(sys.argv[1], session={"office.now": sys.argv[2]}), "killed"), flush=True)
"""


@pytest.mark.parametrize("point", ["recovery_taking", "recovery_taken", "before_deciding", "after_deciding"])
def test_killed_anywhere_it_loses_nothing(board, unstarted, database_url, tick, at, tmp_path, point):
    """C19 (c), REC-3.4: kill -9 before its commit, after it, in mid-admission: the next tick works, the rest comes."""
    tasks = [unstarted(f"T{number}", created=after(minutes=-10 + number)) for number in range(7)]
    kill = Fault("kill", tmp_path / "kill")
    kill.once()
    done = subprocess.run(
        [sys.executable, "-c", SWEEP, database_url, after().isoformat()],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), **setting(kill.at(point))},
        timeout=60, check=False, capture_output=True,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    until(lambda: holders(board) == 0, what="the dead sweep's lock to be free")
    next_one = tick(minutes=1)
    if point == "recovery_taking":
        assert next_one["dispatched"] == CAP
        assert tick(minutes=2)["dispatched"] == 2
    else:
        assert next_one["dispatched"] == 2
        relay_once(at(minutes=2), None)
    assert woken(board) == tasks


def test_its_message_comes_again(board, unstarted, at):
    """REC-1.3, REC-1.8: a redelivered tick ends what it began and takes nothing more."""
    tasks = [unstarted(f"T{number}", created=after(minutes=number - 30)) for number in range(7)]
    first = sweep_once(at(minutes=1), "tick")
    assert sweep_once(at(minutes=3), "tick") == first
    assert woken(board) == tasks[:CAP]


@pytest.mark.parametrize("pool", ["prefork", "solo"])
def test_a_worker_killed_in_mid_sweep(board, unstarted, celery_setup_app, start_worker, tmp_path, pool):
    """C19 (c): kill -9 a worker that holds the sweep's lock: the next tick works, in a worker that is left."""
    board.execute("UPDATE workspaces SET recovery_lookback_hours = 720")
    tasks = [unstarted(f"T{number}") for number in range(5)]
    board.execute("UPDATE tasks SET created_at = now()")
    pause = Fault("pause", tmp_path / "pause")
    pause.once()
    doomed = start_worker(pool=pool, concurrency=1, queues="recovery", env=setting(pause.at("recovery_taking")))
    celery_setup_app.send_task("recovery.recover_unstarted_tasks", queue="recovery")
    until(lambda: holders(board) == 1, what="a sweep that holds the lock")
    doomed.kill("SIGKILL")
    wait_exit(doomed)
    until(lambda: holders(board) == 0, what="the lock to be free")
    assert woken(board) == []
    start_worker(pool=pool, concurrency=1, queues="recovery")
    again = celery_setup_app.send_task("recovery.recover_unstarted_tasks", queue="recovery")
    assert again.get(timeout=30) == {"candidates": 5, "dispatched": 5, "skipped": {}, "failed": 0}
    assert woken(board) == tasks


def holders(board):
    query = (
        "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND granted "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    return board.rows(query)[0]["n"]
