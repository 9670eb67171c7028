"""Random lives of runs and sessions, each step held against the model: claims, endings, deaths, rescues, orders."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from db import leases
from db.endings import Ending
from db.engine import autocommit
from office_tasks.errors import InvalidInput
from office_tasks.execution import backoff, orders
from office_tasks.execution.begin import begin
from office_tasks.execution.end import end
from recovery.rescue import rescue_once
from tests.admission.rows import store_run
from tests.execution.life import GAPS, Office, Run
from tests.support import T0

AGENTS = st.sampled_from(["ana", "bob"])
ANY = st.integers(0, 999)
WAITS = st.sampled_from([1, 20, 30, 45, 60, 150, 800, 3_000, 9_000])
RESULT = {"queued": "retried"}


class Life(RuleBasedStateMachine):
    """Everything that can happen to a run, at an instant that only `wait` moves."""

    board = engine = time = None  # set by the test

    def __init__(self):
        super().__init__()
        self.board.execute("DELETE FROM runs; DELETE FROM sessions; DELETE FROM wakes; DELETE FROM mutations")
        self.board.execute("UPDATE agents SET status = 'active', max_concurrent_sessions = "
                           "CASE id WHEN 'bob' THEN 2 END")  # fmt: skip
        self.office, self.executions, self.time.now = Office(), [], T0

    @rule(seconds=WAITS)
    def wait(self, seconds):
        self.time.now += dt.timedelta(seconds=seconds)

    @rule(agent=AGENTS, task=st.sampled_from([None, "T1", "T2"]))
    def ask(self, agent, task):
        payload = {"task_id": task} if task else {}
        run_id = store_run(self.board, self.time.now, agent=agent, reason="task_mentioned", payload=payload)
        self.office.runs[run_id] = Run(run_id, agent, task, self.time.now)

    @rule()
    def start(self):
        expected, begun = self.office.next(self.time.now), begin(self.engine)
        assert (begun and begun.run.id) == (expected and expected.id)
        if begun:
            self.office.claim(expected, begun, self.time.now)
            assert begun.run.attempt == expected.attempt
            self.executions.append(begun.run)

    def _execution(self, number):
        """Return an execution that began at some time, and its run as it stands if it still holds it."""
        mine = self.executions[number % len(self.executions)]
        run = self.office.runs[mine.id]
        return mine, run if run.holder == mine.lease_token else None

    @precondition(lambda self: self.executions)
    @rule(number=ANY)
    def finish(self, number):
        mine, run = self._execution(number)
        assert end(self.engine, mine, Ending("finish", result="1")).result == (
            run.settle("finished") if run else "lost"
        )

    @precondition(lambda self: self.executions)
    @rule(number=ANY)
    def fail(self, number):
        mine, run = self._execution(number)
        over = end(self.engine, mine, backoff.failed(mine.attempt, "E"))
        status = run and run.settle("failed" if run.attempt == 5 else "queued")
        assert over.result == RESULT.get(status, status or "lost")
        if status == "queued":
            run.retry_at = over.ended.scheduled_retry_at
            assert 0.75 <= (run.retry_at - self.time.now) / GAPS[run.attempt - 1] <= 1.25

    @precondition(lambda self: self.executions)
    @rule(number=ANY)
    def renew(self, number):
        mine, run = self._execution(number)
        with autocommit(self.engine) as connection:
            answer = leases.renew(connection, mine.id, mine.lease_token)
        assert answer is (run and run.asked_at is not None)
        if run:
            run.expires = self.time.now + dt.timedelta(seconds=60)

    @rule()
    def rescue(self):
        stale = [run for run in self.office.runs.values() if run.is_stale(self.time.now)]
        done = rescue_once(self.engine)
        assert sum(done.values()) == len(stale)
        for run in stale:
            if run.settle("failed" if run.attempt == 5 else "queued") == "queued":
                run.retry_at = self.board.run(run.id)["scheduled_retry_at"]
                assert (run.retry_at == self.time.now) == (run.attempt == 1)

    @precondition(lambda self: self.office.runs)
    @rule(number=ANY)
    def order_to_stop(self, number):
        run = list(self.office.runs.values())[number % len(self.office.runs)]
        if run.status in ("finished", "failed"):
            with pytest.raises(InvalidInput):
                orders.cancel(self.engine, str(run.id))
        elif run.status == "cancelled":
            assert not orders.cancel(self.engine, str(run.id))["changed"]
        else:
            orders.cancel(self.engine, str(run.id))
            run.asked_at = run.asked_at or (self.time.now if run.status == "claimed" else None)
            run.status = "cancelled" if run.status == "queued" else run.status

    @precondition(lambda self: self.office.live)
    @rule(number=ANY)
    def end_a_session(self, number):
        pair = sorted(self.office.live)[number % len(self.office.live)]
        ended = self.office.live.pop(pair)
        self.office.ended.add(ended)
        self.board.execute("UPDATE sessions SET state = 'completed', ended_at = :at, updated_at = :at WHERE id = :id",
                           at=T0, id=ended)  # fmt: skip

    @rule(agent=AGENTS)
    def pause_or_resume(self, agent):
        self.office.paused ^= {agent}
        status = "paused" if agent in self.office.paused else "active"
        self.board.execute("UPDATE agents SET status = :status WHERE id = :id", status=status, id=agent)

    @rule(agent=AGENTS, most=st.sampled_from([1, 2, 3]))
    def limit(self, agent, most):
        self.office.limits[agent] = most
        self.board.execute("UPDATE agents SET max_concurrent_sessions = :most WHERE id = :id", most=most, id=agent)

    @invariant()
    def every_run_is_where_it_should_be(self):
        rows = {row["id"]: (row["status"], row["attempt"], row["lease_token"]) for row in self.board.runs()}
        assert rows == {run.id: (run.status, run.attempt, run.holder) for run in self.office.runs.values()}

    @invariant()
    def every_session_is_where_it_should_be(self):
        rows = self.board.rows("SELECT id, state, updated_at FROM sessions")
        assert {row["id"]: row["state"] for row in rows} == self.office.session_states()
        assert {row["updated_at"] for row in rows if row["state"] == "completed"} <= {T0}


@pytest.mark.timeout(300)
def test_random_lives(board, virtual, time, on_board):
    """REC-2.1, REC-2.2, REC-2.5, REC-2.7, REC-2.8, REC-2.10, 8-engineering 21: as the model has it, at every step."""
    for task in ("T1", "T2"):
        on_board(task)

    class Here(Life):
        pass

    Here.board, Here.engine, Here.time = board, virtual, time
    run_state_machine_as_test(Here, settings=settings(
        max_examples=40, stateful_step_count=40, deadline=None, derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    ))  # fmt: skip
