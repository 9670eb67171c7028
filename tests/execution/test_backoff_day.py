"""A day of virtual time with executions and sweeps as they are: a task that always fails is no storm (REC-1.5)."""

from __future__ import annotations

import datetime as dt

import pytest

from office_tasks.execution import backoff
from office_tasks.ids import new_id
from recovery.sweep import sweep_once
from tests.execution.handlers import raising
from tests.support import T0, after

MINUTE = dt.timedelta(minutes=1)
# From the end of the last run to the next recovery, in minutes; the first waits for nothing.
GAPS = [0, 1, 2, 4, 8, 16, 32, *[60] * 20]


class Day:
    """One task that ana drives; from event to event, its runs are executed and the sweep looks every minute."""

    def __init__(self, board, engine, time, execute):
        self.board, self.engine, self.time, self.execute = board, engine, time, execute
        self.launched, self.ticks = [], []

    def pass_by(self, work):
        """Let it pass, or what it takes until a run finishes."""
        while self.time.now < after(hours=24) and "finished" not in self.results():
            self._launch(work)
            if (self.time.now - T0) % MINUTE == dt.timedelta(0):
                is_live = self.results()[-1] == "retried"
                self.ticks.append((self.time.now, is_live, sweep_once(self.engine, str(new_id()))))
                self._launch(work)
            self.time.now = self._next_event()

    def _launch(self, work):
        while over := self.execute(work):
            self.launched.append((self.time.now, over))

    def _next_event(self):
        """A retry that comes, or else the next minute: while a run waits for its retry the sweep has nothing to do."""
        [row] = self.board.rows("SELECT min(scheduled_retry_at) AS at FROM runs WHERE status = 'queued'")
        return row["at"] or T0 + ((self.time.now - T0) // MINUTE + 1) * MINUTE

    def results(self):
        return [over.result for _, over in self.launched]

    def recovered(self):
        return [at for at, _, summary in self.ticks if summary["dispatched"]]

    def ended(self):
        return [at for at, over in self.launched if over.result == "failed"]


@pytest.fixture
def day(board, virtual, time, execute, queue, on_board):
    """The task as its assignment left it: on the board, its first run in line."""
    board.execute("UPDATE workspaces SET recovery_lookback_hours = 720")  # which would end it too
    on_board("T1")
    queue(task="T1", reason="task_assigned", key="task_assigned:T1:ana:1")
    return Day(board, virtual, time, execute)


JITTER = {"the shortest": lambda low, _high: low, "the longest": lambda _low, high: high, "random": None}


@pytest.mark.parametrize("jitter", JITTER)
def test_a_task_that_always_fails_for_a_day(board, day, monkeypatch, jitter):
    """REC-1.5, REC-2.7, C25: launched 50 times at the most, after gaps that grow, and visible in every summary."""
    if JITTER[jitter]:
        monkeypatch.setattr(backoff.random, "uniform", JITTER[jitter])
    day.pass_by(raising(RuntimeError("no luck")))

    assert 25 <= len(day.launched) <= 50
    assert {over.run.attempt for _, over in day.launched} == {1, 2, 3, 4, 5}
    waited = [begun - ended for ended, begun in zip(day.ended(), day.recovered(), strict=False)]
    assert [wait // MINUTE for wait in waited] == GAPS[: len(waited)], "each until the next tick"
    for at, is_live, summary in day.ticks:
        waits = not is_live and at not in day.recovered()
        assert (summary["candidates"], summary["skipped"]) == (not is_live, {"backing_off": 1} if waits else {})
    assert board.rows("SELECT DISTINCT task_id FROM runs") == [{"task_id": "T1"}]


@pytest.mark.parametrize("failures", [0, 3, 5, 12])
def test_one_that_succeeded_is_never_swept_again(day, failures):
    """REC-1.1, REC-1.5: whether at once, at a retry or after recoveries; and for a month, it is not even counted."""

    def succeed_at_last(_context):
        if len(day.launched) < failures:
            raise RuntimeError

    day.pass_by(succeed_at_last)
    assert day.results().count("finished") == 1
    assert len(day.launched) == failures + 1
    for later in [*(n * MINUTE for n in range(60)), *(dt.timedelta(hours=n) for n in range(1, 700, 12))]:
        day.time.now = day.launched[-1][0] + later
        assert sweep_once(day.engine, str(new_id()))["candidates"] == 0
