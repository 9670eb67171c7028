"""Random histories, through the real admission and through the model: the same answers, the same rows."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from office_tasks.admission import ALLOWANCE_WINDOW, COALESCE_WINDOW, DUPLICATE_LOOKBACK
from tests.admission.model import Model, Said
from tests.support import T0

TICK = dt.timedelta(milliseconds=1)
WINDOWS = [dt.timedelta(), ALLOWANCE_WINDOW, COALESCE_WINDOW, DUPLICATE_LOOKBACK]
# Mostly forwards and by little; back too, as two servers' clocks may be.
STEPS = [dt.timedelta(), TICK, COALESCE_WINDOW / 2, COALESCE_WINDOW, ALLOWANCE_WINDOW / 4, -TICK, -COALESCE_WINDOW]

# The first of each list is the simplest, which is what a failure shrinks to; the likeliest are listed more than once.
AGENTS = ["ana"] * 5 + ["bob", "ghost"]
REASONS = ["task_assigned"] * 5 + ["of_our_own"]
KEYS = [None] * 3 + ["k1", "k2", "task_comment:c1", "task_comment:c2"]
TASKS = ["T1"] * 5 + ["T2", "", None, 42]
ACTORS = ["agent"] * 4 + ["user", None, 7]
ODD_PAYLOADS = [{}, [], "T1", None]


def weighted(*choices):
    """Draw from each strategy as often as its weight says; `one_of` would take a repeated one for one."""
    return st.sampled_from([strategy for weight, strategy in choices for _ in range(weight)]).flatmap(
        lambda drawn: drawn
    )


fields = st.fixed_dictionaries({"task_id": st.sampled_from(TASKS), "actor_type": st.sampled_from(ACTORS)})
payloads = weighted((6, fields), (1, st.sampled_from(ODD_PAYLOADS)))
wakes = st.tuples(st.just("ask"), st.sampled_from(AGENTS), st.sampled_from(REASONS), payloads, st.sampled_from(KEYS))
# A task's worst hour: one agent assignment after the other, keyless, just too far apart to merge.
pushes = st.tuples(st.just("push"), st.integers(1, 6))
which = st.integers(0, 5)
steps = st.tuples(st.just("step"), st.sampled_from(STEPS))
edges = st.tuples(
    st.just("edge"),
    which,
    st.sampled_from(WINDOWS),
    st.sampled_from([0, -1, 1]),
    st.booleans(),
    st.sampled_from([None, "bob"]),
)
lives = st.tuples(st.sampled_from(["claimed", "finished", "failed", "retry", "delete"]), which)
switches = st.tuples(st.just("pause"), st.sampled_from([False, False, True])) | st.tuples(
    st.just("status"), st.sampled_from(["ana", "bob"]), st.sampled_from(["active"] * 3 + ["stopped", "paused"])
)
again = st.tuples(st.just("redeliver"), which)
moves = weighted((8, wakes), (5, edges), (2, steps), (1, pushes), (3, lives), (1, again), (1, switches))
# Lists of lists: long enough to get somewhere, and a failure still shrinks to the few moves that make it.
histories = st.lists(st.lists(moves, max_size=10), max_size=10).map(
    lambda parts: [move for part in parts for move in part]
)


COLUMNS = (
    "id",
    "agent_profile_id",
    "reason",
    "payload",
    "idempotency_key",
    "requested_at",
    "status",
    "coalesced_count",
)


class Both:
    """The real admission and the model, side by side through one history."""

    def __init__(self, board):
        self.board, self.model, self.at, self.asked = board, Model(), T0, []
        board.execute("DELETE FROM wakes; DELETE FROM runs; DELETE FROM pauses; UPDATE agents SET status = 'active'")

    def ask(self, agent, reason, payload, key):
        asked = {"agent": agent, "reason": reason, "payload": payload, "key": key, "wake_id": f"w{len(self.asked)}"}
        answer = self.board.ask(self.at, **asked)
        said = self.model.ask(self.at, agent, reason, {} if payload is None else payload, key)
        if said.outcome == "queued":
            said.run.name = answer.run_id
        assert heard(answer) == expected(said)
        self.asked.append((asked, answer))

    def push(self, times):
        for _ in range(times):
            self.ask("ana", "task_assigned", {"task_id": "T1", "actor_type": "agent"}, None)
            self.at += COALESCE_WINDOW

    def step(self, by):
        self.at += by

    def edge(self, which, window, side, keyed, agent):
        """Ask for one run again when it is exactly as old as a window is long, or a tick beside it."""
        runs = [run for run in self.model.runs if run.key or not keyed]
        if runs:
            run = runs[which % len(runs)]
            self.at = run.requested_at + window + side * TICK
            self.ask(agent or run.agent, run.reason, run.payload, run.key if keyed else None)

    def pause(self, paused):
        if paused == self.model.paused:
            return
        self.model.paused = paused
        self.board.execute(
            "INSERT INTO pauses (workspace_id) VALUES ('acme')" if paused else "UPDATE pauses SET resumed_at = now()"
        )

    def status(self, agent, status):
        self.model.agents[agent] = status
        self.board.execute("UPDATE agents SET status = :status WHERE id = :agent", agent=agent, status=status)

    def redeliver(self, which):
        """ADM-6.4: the same message again, at another time, in another state of things: the same answer."""
        if self.asked:
            asked, answer = self.asked[which % len(self.asked)]
            assert self.board.ask(self.at, **asked) == answer

    def live(self, event, which):
        """Let the life of one run go on: claimed, ended, waiting for a retry, or purged."""
        if not self.model.runs:
            return
        run = self.model.runs[which % len(self.model.runs)]
        if event == "delete":
            self.model.runs.remove(run)
            self.board.execute("DELETE FROM runs WHERE id = :id", id=run.name)
        elif event == "retry":
            run.status, run.retry_at = "queued", self.at
            self.board.execute(
                "UPDATE runs SET status = 'queued', scheduled_retry_at = :at, lease_token = NULL, finished_at = NULL "
                "WHERE id = :id",
                id=run.name,
                at=self.at,
            )
        else:
            run.status, run.retry_at = event, None
            self.board.set_status(run.name, event)
            self.board.execute("UPDATE runs SET scheduled_retry_at = NULL WHERE id = :id", id=run.name)

    def follow(self, history):
        for verb, *arguments in history:
            if verb in ("claimed", "finished", "failed", "retry", "delete"):
                self.live(verb, *arguments)
            else:
                getattr(self, verb)(*arguments)


def heard(answer):
    return answer.outcome.value, answer.gate, answer.refusal, answer.run_id, answer.observed


def expected(said: Said):
    return said.outcome, said.gate, said.refusal, said.run and said.run.name, said.observed


def rows_of(board):
    return sorted(([row[name] for name in COLUMNS] for row in board.runs()), key=lambda row: row[0])


def rows_expected(model):
    rows = [[r.name, r.agent, r.reason, r.payload, r.key, r.requested_at, r.status, r.count] for r in model.runs]
    return sorted(rows, key=lambda row: row[0])


@pytest.mark.timeout(300)
@given(history=histories)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_random_history_is_decided_as_the_criteria_say(acme, history):
    """ADM-2.1, ADM-3.2, ADM-4.2, ADM-5.2, ADM-5.4, ADM-6.1, ADM-6.4, ADM-7.1: the model's answers, and its rows."""
    both = Both(acme)
    both.follow(history)
    assert rows_of(acme) == rows_expected(both.model)
    assert acme.count("wakes") == len(both.asked)
