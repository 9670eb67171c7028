"""Random histories of seats, moves, assignments, executions and deaths, held against the model after every step."""

from __future__ import annotations

import os
from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from db import capacity
from db.endings import Ending
from db.engine import autocommit
from db.states import SEAT_ROLES
from office_tasks import admin
from office_tasks.errors import OfficeError
from office_tasks.execution.begin import Begun, begin
from office_tasks.execution.end import Over, end, report
from office_tasks.execution.execute import execute_next
from office_tasks.faults import ENVIRONMENT, FaultPointError
from office_tasks.producers import assignments, creation, deletion, participants, steps
from office_tasks.termination import GUARDED
from tests.admission.conftest import empty
from tests.integration.faults import Fault
from tests.support import Board
from tests.termination.model import Model, Owed, Refusal
from tests.termination.stage import Stage

HANDLER = "office_tasks.execution.handler:log_and_finish"
STEPS = {"start": None, "wait": None, "late": None, "led": "cleo"}
NAMES = ("ana", "bob", "cleo")
TASKS = ("T1", "T2")
POINTS = (None, None, None, "after_commit", "before_question")

# The first is the likeliest, so that much happens to one pair.
tasks = st.sampled_from(("T1", *TASKS))
agents = st.sampled_from(("ana", "ana", *NAMES))
places = st.sampled_from(tuple(STEPS))
roles = st.sampled_from(("reviewer",) * 3 + ("approver",) * 2 + SEAT_ROLES)
points = st.sampled_from(POINTS)


class Sessions(RuleBasedStateMachine):
    """The real office and the model, side by side."""

    def __init__(self, engine, token):
        super().__init__()
        empty(engine)
        self.engine, self.token = engine, token
        self.stage = Stage(Board(engine).furnish())
        admin.create_agent(engine, "acme", "cleo")
        admin.create_step(engine, "acme", "late", workflow_id="flow")
        admin.create_step(engine, "acme", "led", workflow_id="flow", primary_agent_id="cleo")
        self.model = Model(NAMES, STEPS)
        self.open, self.cut_short, self.messages = {}, [], count(1)

    # A mutation, by its message; it may die behind its commit, and its message come again at any time, or never.

    def act(self, name, real, *args, point=None):
        message = f"m{next(self.messages)}"
        try:
            owed = getattr(self.model, name)(*args)
        except Refusal as refusal:
            self.refused(refusal.kind, real, message)
            return
        if self.dies(real, message, point, owed):
            self.cut_short.append((real, message, owed))
        else:
            self.settled(real, message, owed)

    def refused(self, kind, real, message):
        with pytest.raises(OfficeError) as caught:
            real(self.engine, message)
        assert type(caught.value).__name__ == kind
        assert self.stage.board.rows("SELECT 1 FROM mutations WHERE id = :id", id=message) == []

    def dies(self, real, message, point, owed):
        """Tell whether the call came to the fault point: who owes no question does not come to its own."""
        if point is None or (point == "before_question" and owed.guard is None):
            return False
        fault = Fault("raise", self.token)
        os.environ[ENVIRONMENT] = fault.at(point)
        fault.once()
        try:
            with pytest.raises(FaultPointError):
                real(self.engine, message)
        finally:
            fault.off()
            del os.environ[ENVIRONMENT]
        if point == "before_question":
            # The interrupt comes before the question.
            self.model.settle(Owed(stops=owed.stops))
        return True

    def settled(self, real, message, owed):
        result = real(self.engine, message)
        ended = self.model.settle(owed)
        assert ("session" in result) is (owed.guard is not None)
        assert ended is None or result["session"]["terminated"] is ended

    @precondition(lambda self: self.cut_short)
    @rule(data=st.data())
    def redeliver(self, data):
        """PRO-6.1: the message again: nothing is mutated, its question is about now."""
        one = data.draw(st.sampled_from(range(len(self.cut_short))))
        self.settled(*self.cut_short.pop(one))

    # What happens to the board

    @initialize(step=st.sampled_from((*STEPS, None)), one=st.sampled_from((*NAMES, "")), other=agents)
    def create(self, step, one, other):
        for task, place, agent in (("T1", "start", other), ("T2", step, one)):
            self.act("create", self.creating(task, place, agent), task, place, agent)

    @staticmethod
    def creating(task, step, agent):
        where = {"step_id": step} if step else {"workflow_id": "flow"}
        more = {"task_id": task, "assignee_id": agent, **where}
        return lambda engine, message: creation.create_task(engine, message, "acme", "a task", **more)

    @rule(task=tasks, step=places)
    def enter(self, task, step):
        self.act("enter", lambda engine, message: steps.enter_step(engine, message, task, step, None), task, step)

    @rule(task=tasks, agent=st.sampled_from((*NAMES, "")), point=points)
    def assign(self, task, agent, point):
        def real(engine, message):
            return assignments.assign_task(engine, message, task, agent)

        self.act("assign", real, task, agent, point=point)

    @rule(task=tasks, agent=agents, role=roles)
    def add(self, task, agent, role):
        def real(engine, message):
            return participants.add_participant(engine, message, task, agent, role)

        self.act("add", real, task, agent, role)

    def remove(self, task, agent, role, point):
        def real(engine, message):
            return participants.remove_participant(engine, message, task, agent, role)

        self.act("remove", real, task, agent, role, point=point)

    def claim(self, task, role, displaced, claiming, point):
        def real(engine, message):
            return participants.claim_seat(engine, message, task, role, displaced, claiming)

        self.act("claim", real, task, role, displaced, claiming, point=point)

    @rule(task=tasks, role=roles, one=agents, other=agents, claims=st.booleans(), point=points)
    def lose_any(self, task, role, one, other, claims, point):
        """Which may be none of its seats, or not to be had: then nothing is written."""
        if claims:
            self.claim(task, role, one, other, point)
        else:
            self.remove(task, one, role, point)

    @precondition(lambda self: self.taken())
    @rule(data=st.data(), hand_over=st.booleans(), point=points)
    def lose_one_that_is_there(self, data, hand_over, point):
        task, role, agent = data.draw(st.sampled_from(self.taken()))
        others = sorted(set(self.model.agents) - {agent})
        if not hand_over or not others:
            self.remove(task, agent, role, point)
        elif role == "runner":
            self.assign(task, data.draw(st.sampled_from(others)), point)
        else:
            self.claim(task, role, agent, data.draw(st.sampled_from(others)), point)

    @precondition(lambda self: self.taken())
    @rule(data=st.data())
    def lose_some(self, data):
        """One after the other, as an agent leaves a task."""
        for _ in range(data.draw(st.integers(1, 4))):
            if self.taken():
                self.lose_one_that_is_there(data, data.draw(st.booleans()), data.draw(points))

    def taken(self):
        """Return the seats where their tasks stand; only of those that talk, if any does."""
        seats = [
            (name, seat.role, seat.agent)
            for name, task in self.model.tasks.items() for seat in task.seats if seat.step == task.step
        ]  # fmt: skip
        return [seat for seat in seats if self.model.live(seat[0], seat[2])] or seats

    @rule(step=places, role=st.sampled_from(("reviewer", "runner")), agent=agents)
    def put_or_take_a_template(self, step, role, agent):
        template = (step, role, agent)
        if template in self.model.templates:
            self.stage.board.execute(
                "DELETE FROM seats WHERE task_id IS NULL AND step_id = :step AND role = :role "
                "AND agent_profile_id = :agent",
                step=step, role=role, agent=agent,
            )  # fmt: skip
        else:
            self.stage.seat(role, agent, None, step)
        self.model.templates ^= {template}

    @precondition(lambda self: len(self.model.agents) == len(NAMES))
    @rule(agent=agents, really=st.sampled_from((False, False, True)))
    def delete(self, agent, really):
        if really:
            self.act("delete", lambda engine, message: deletion.delete_agent(engine, message, agent), agent)

    @precondition(lambda self: len(self.model.agents) < len(NAMES))
    @rule()
    def hire_again(self):
        for agent in sorted(set(NAMES) - set(self.model.agents)):
            admin.create_agent(self.engine, "acme", agent)
            self.model.agents[agent] = "active"

    @rule(agent=agents, status=st.sampled_from(("active", "paused")))
    def set_status(self, agent, status):
        if agent in self.model.agents and status != self.model.agents[agent]:
            admin.set_agent_status(self.engine, agent, status)
            self.model.agents[agent] = status

    # Executions: some to their end at once, some that go on while other things happen

    def ask(self, task, agent):
        """Wake an agent about a task, whether or not it has anything to do with it."""
        self.stage.board.ask(None, agent=agent, reason="of_our_own", payload={"task_id": task})

    @rule(task=tasks, agent=agents, roles=st.lists(roles, max_size=3, unique=True), step=st.none() | places)
    def join(self, task, agent, roles, step):
        if step:
            self.enter(task, step)
        for role in roles:
            if role == "runner":
                self.assign(task, agent, None)
            else:
                self.add(task, agent, role)
        self.talk(task, agent)

    @rule(task=tasks, hops=st.lists(st.tuples(places, agents), min_size=2, max_size=3), last=places)
    def hand_on(self, task, hops, last):
        """From step to step and from runner to runner, and one step further."""
        for step, agent in hops:
            self.enter(task, step)
            self.assign(task, agent, None)
        self.enter(task, last)

    @rule(task=tasks, agent=agents)
    def talk(self, task, agent):
        self.ask(task, agent)
        self.execute()

    @rule()
    def execute(self):
        """Execute what is in line."""
        while over := execute_next(self.engine, HANDLER):
            if self.began(over.run, over.result == "cancelled"):
                assert over.result == self.model.end(over.run.id)

    @rule(task=tasks, agent=agents)
    def begin(self, task, agent):
        self.ask(task, agent)
        begun = begin(self.engine)
        if isinstance(begun, Over):
            report(begun)
        if begun is not None and self.began(begun.run, isinstance(begun, Over), begun):
            self.open[begun.run.id] = begun.run

    def began(self, run, stale, begun=None):
        """Tell whether the run was executed, which it is unless it was stale."""
        assert self.model.agents[run.agent_profile_id] == "active"
        assert stale is self.model.is_stale(run.task_id, run.agent_profile_id, run.reason)
        if stale:
            return False
        is_new = self.model.begin(run.id, run.task_id, run.agent_profile_id)
        assert not isinstance(begun, Begun) or begun.session.is_new is is_new
        return True

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def finish(self, data):
        run = self.open.pop(data.draw(st.sampled_from(sorted(self.open))))
        assert end(self.engine, run, Ending("finish", result="null")).result == self.model.end(run.id)

    # The guarded step by itself

    @rule(task=tasks, agent=agents, reason=st.sampled_from(GUARDED))
    def terminate(self, task, agent, reason):
        result = self.stage.guard(agent, task, reason)
        assert result["terminated"] is self.model.end_unless_held(task, agent, reason)
        assert ("retained" in result) is self.model.holds(task, agent)

    @invariant()
    def a_live_session_exists_exactly_when_the_model_says_so(self):
        """And each that ended has the reason that it ended for."""
        rows = self.stage.board.rows("SELECT task_id, agent_profile_id, state, reason FROM sessions")
        assert sorted(map(str, ([*row.values()] for row in rows))) == sorted(
            map(str, map(self.row, self.model.sessions))
        )

    @invariant()
    def the_question_is_answered_as_the_model_says(self):
        with autocommit(self.engine) as connection:
            for task in self.model.tasks:
                held = [agent for agent in NAMES if capacity.retained(connection, task, agent)]
                assert held == [agent for agent in NAMES if self.model.holds(task, agent)]

    def row(self, session):
        live = "running" if self.model.running(session) else "idle"
        return [session.task, session.agent, "completed" if session.reason else live, session.reason]


@pytest.mark.timeout(300)
def test_a_live_session_exists_exactly_when_the_criteria_say_so(admission_engine, tmp_path):
    """SES-1.1 to SES-1.5, SES-1.9 to SES-1.11, SES-2.1 to SES-2.5, SES-3.1, C21: after every step of any history."""
    chosen = settings(max_examples=60, stateful_step_count=40, deadline=None, derandomize=True)
    run_state_machine_as_test(lambda: Sessions(admission_engine, tmp_path / "strike"), settings=chosen)
    empty(admission_engine)
