"""A task whose runs keep failing: recovered with growing gaps, each counted from the end of its last run (REC-1.5)."""

from __future__ import annotations

import datetime as dt
import itertools

import pytest

from office_tasks.ids import new_id
from office_tasks.producers.assignments import assign_task
from recovery.sweep import sweep_once
from tests.admission.rows import store_run
from tests.recovery.virtual import VirtualTime
from tests.support import T0, after

# Five attempts, 2 + 10 + 30 + 120 minutes apart, each 25 % less or more, in whole minutes; and one that is cancelled
# before it starts.
ATTEMPTS = 5
ONE_MINUTE = dt.timedelta(minutes=1)
LASTING = {"never_started": 0 * ONE_MINUTE, "the_shortest": 122 * ONE_MINUTE, "the_longest": 203 * ONE_MINUTE}


class Day:
    """One task for a day, swept every minute; each of its runs fails after so many minutes."""

    def __init__(self, board, engine, lasting):
        self.board, self.lasting = board, lasting
        self.time = VirtualTime()
        self.engine = self.time.rule(engine)
        self.woken, self.skipped = [], []

    def pass_by(self):
        for minute in range(24 * 60):
            self.time.move(minutes=minute)
            self._fail_what_is_due()
            done = sweep_once(self.engine, str(new_id()))
            self.woken += [minute] * done["dispatched"]
            self.skipped += [minute] * done["skipped"].get("backing_off", 0)

    def _fail_what_is_due(self):
        self.board.execute(
            "UPDATE runs SET status = 'failed', finished_at = requested_at + :lasting "
            "WHERE status = 'queued' AND requested_at + :lasting <= :now",
            now=self.time.now, lasting=self.lasting,
        )  # fmt: skip

    def gaps(self):
        """Return from when to when, minutes, nothing was running and the task was not woken."""
        ends = self.board.rows("SELECT finished_at FROM runs WHERE status = 'failed' ORDER BY finished_at")
        ended = [(row["finished_at"] - T0) // ONE_MINUTE for row in ends]
        return list(zip(ended, self.woken, strict=False))


@pytest.mark.parametrize("lasting", LASTING.values(), ids=LASTING)
def test_a_day_of_runs_that_all_fail(board, unstarted, make_test_engine, lasting):
    """REC-1.5, C25: launched 50 times at the most, after gaps of 1, 2, 4 ... 60 minutes, and seen in every summary."""
    board.execute("UPDATE workspaces SET recovery_lookback_hours = 720")  # which would end it too
    unstarted("T1")
    store_run(board, T0, payload={"task_id": "T1"}, key="task_assigned:T1:ana:1")
    day = Day(board, make_test_engine(), lasting)
    day.pass_by()

    gaps = [begun - ended for ended, begun in day.gaps()]
    assert gaps == ([0, 1, 2, 4, 8, 16, 32] + [60] * 30)[: len(gaps)], "a first recovery waits for nothing"
    seen = {minute for ended, begun in day.gaps() for minute in range(ended + 1, begun)}
    assert seen <= set(day.skipped), "backing off, and visibly"
    assert len(day.woken) <= (10 if lasting else 30)
    assert board.count("runs") * (ATTEMPTS if lasting else 1) <= 50


def test_the_gap_is_over_to_the_instant(board, unstarted, tick):
    """REC-1.5: the fourth recovery's run ended at 0:00; the next may come from 0:08 on."""
    unstarted("T1", recovery_attempts=4, recovery_next_at=after(hours=-3))
    run = store_run(board, after(hours=-3), payload={"task_id": "T1"})
    board.execute("UPDATE runs SET status = 'failed', finished_at = :at WHERE id = :id", at=after(), id=run)
    for delta in ({"seconds": 1}, {"minutes": 7, "seconds": 59}):
        assert tick(**delta) == {"candidates": 1, "dispatched": 0, "skipped": {"backing_off": 1}, "failed": 0}
    assert tick(minutes=8)["dispatched"] == 1


def test_a_run_of_any_reason_that_just_ended_counts(board, unstarted, tick):
    """REC-1.5: the last run of the task, whatever woke it; a run of another task does not."""
    unstarted("T1", recovery_attempts=7)
    for task, reason in (("T1", "task_comment"), ("T2", "task_assigned")):
        run = store_run(board, after(), reason=reason, payload={"task_id": task})
        ended = after(minutes=30 if task == "T2" else 0)
        board.execute("UPDATE runs SET status = 'cancelled', finished_at = :at WHERE id = :id", at=ended, id=run)
    assert tick(minutes=59)["skipped"] == {"backing_off": 1}
    assert tick(minutes=60)["dispatched"] == 1


def test_an_attempt_that_inserted_nothing_has_its_gaps_too(board, unstarted, make_test_engine):
    """REC-1.5: the wake cannot even be written: tried after 1, 2, 4 ... minutes, never on every tick."""
    unstarted("T1")
    board.execute("ALTER TABLE wakes ADD CONSTRAINT never CHECK (false) NOT VALID")
    time = VirtualTime()
    engine, tried = time.rule(make_test_engine()), []
    for minute in range(70):
        time.move(minutes=minute)
        tried += [minute] * sweep_once(engine, str(new_id()))["failed"]
    assert [later - earlier for earlier, later in itertools.pairwise(tried)] == [1, 2, 4, 8, 16, 32]


def test_a_reassigned_task_begins_anew(board, unstarted, tick):
    """C25, REC-1.5: what was tried for the last agent is not held against the present one."""
    unstarted("T1", recovery_attempts=5, recovery_next_at=after(hours=1))
    run = assign_task(board.engine, "m1", "T1", "bob", instant=after())["runs"][0]
    assert board.rows("SELECT recovery_attempts, recovery_next_at FROM tasks") == [
        {"recovery_attempts": 0, "recovery_next_at": None}
    ]
    board.execute("UPDATE runs SET status = 'failed', finished_at = :at WHERE id = :id", at=after(), id=run)
    assert tick(minutes=1)["dispatched"] == 1
    assert board.runs()[-1]["agent_profile_id"] == "bob"
