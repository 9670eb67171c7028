"""Several at once: two that each take a capacity away, one that grants another, a run that is claimed meanwhile."""

from __future__ import annotations

import random
import uuid
from itertools import count
from threading import Barrier, Event

import pytest

from db import claims, sessions
from office_tasks.ids import new_id
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.deletion import delete_agent
from office_tasks.producers.participants import add_participant, claim_seat, remove_participant
from tests.admission.rows import store_run
from tests.admission.telling import counted, listening
from tests.db.test_deadlocks import as_celery_would
from tests.faults.waits import PATIENTLY, in_background, until_blocked
from tests.integration.faults import somebody_waits
from tests.nodes.waiting import until
from tests.support import T0, after
from tests.termination.stage import SUPPRESSED

ROUNDS = 500
LONGEST = 0.004

_messages = count(1)


def message():
    return f"race-{next(_messages)}"


# By name: what `ana` holds, and two acts that each take one of her capacities away.
PAIRS = {
    "remove and reassign": (
        ("runner", "reviewer"),
        lambda engine, task: remove_participant(engine, message(), task, "ana", "reviewer"),
        lambda engine, task: assign_task(engine, message(), task, "bob"),
    ),
    "remove and remove": (
        ("reviewer", "approver"),
        lambda engine, task: remove_participant(engine, message(), task, "ana", "reviewer"),
        lambda engine, task: remove_participant(engine, message(), task, "ana", "approver"),
    ),
    "claim and unassign": (
        ("runner", "reviewer"),
        lambda engine, task: claim_seat(engine, message(), task, "reviewer", "ana", "cleo"),
        lambda engine, task: assign_task(engine, message(), task, ""),
    ),
}


def cast(stage, task, roles):
    """Put a task there, `ana` in these roles, and a conversation of hers; return its id."""
    stage.board.execute(
        "INSERT INTO tasks (id, workspace_id, workflow_id, step_id, title) VALUES (:id, 'acme', 'flow', 'wait', '')",
        id=task,
    )
    for role in roles:
        stage.seat(role, "ana", task, "wait")
    return stage.converse(task)


@pytest.fixture
def race(make_test_engine):
    """Return a function that does two acts at once, each on a connection of its own, each late by a random moment."""
    engines = [make_test_engine(pool_size=1) for _ in range(2)]

    def run(submit, acts, delays):
        start = Barrier(2)

        def one(engine, act, delay):
            start.wait(20)
            Event().wait(delay)
            return act(engine)

        calls = [submit(one, *each) for each in zip(engines, acts, delays, strict=True)]
        return [call.result(30) for call in calls]

    return run


@pytest.mark.timeout(300)
@pytest.mark.parametrize("pair", PAIRS)
def test_two_losses_at_once_end_the_session(stage, race, pair):
    """SES-1.8: 500 times, by ordering alone: whoever asks last sees both commits; ended each time, and once."""
    roles, *acts = PAIRS[pair]
    delays = random.Random(pair)
    tasks = [f"T{n}" for n in range(ROUNDS)]
    told = []
    with in_background() as submit:
        for task in tasks:
            cast(stage, task, roles)
            both = [lambda engine, act=act, task=task: act(engine, task) for act in acts]
            results = race(submit, both, [delays.uniform(0, LONGEST) for _ in both])
            told.append([result["session"] for result in results])
    ended = stage.board.rows("SELECT task_id, state, ended_at FROM sessions")
    assert {row["task_id"] for row in ended if row["state"] == "completed"} == set(tasks)
    assert len(ended) == ROUNDS
    assert [sum(one["terminated"] for one in pair) for pair in told] == [1] * ROUNDS
    assert "read_failed" not in {one.get("retained") for pair in told for one in pair}


def test_the_two_did_meet(stage, race):
    """SES-1.8: in the same setting both orders happen: the first to ask may be kept by the other's capacity, or not."""
    roles, *acts = PAIRS["remove and reassign"]
    delays = random.Random(1)
    seen = set()
    with in_background() as submit:
        for n in range(200):
            cast(stage, f"T{n}", roles)
            both = [lambda engine, act=act, task=f"T{n}": act(engine, task) for act in acts]
            results = race(submit, both, [delays.uniform(0, LONGEST) for _ in both])
            seen.add(tuple(result["session"]["terminated"] for result in results))
            if len(seen) == 2:
                return
    raise AssertionError(seen)


GRANTS = {
    "a seat": (lambda stage: add_participant(stage.engine, "grant", "T1", "ana", "approver"), "seat"),
    "the task": (lambda stage: assign_task(stage.engine, "grant", "T1", "ana"), "runner"),
    "a template": (lambda stage: stage.seat("watcher", "ana", task=None), "seat"),
    "the same seat": (lambda stage: add_participant(stage.engine, "grant", "T1", "ana", "reviewer"), "seat"),
    "another's seat": (lambda stage: claim_seat(stage.engine, "grant", "T1", "reviewer", "bob", "ana"), "seat"),
}
LOSSES = {
    "participant_removed": lambda stage: remove_participant(stage.engine, "loss", "T1", "ana", "reviewer"),
    "participant_seat_claimed": lambda stage: claim_seat(stage.engine, "loss", "T1", "reviewer", "ana", "cleo"),
    "task_reassigned": lambda stage: assign_task(stage.engine, "loss", "T1", "cleo"),
}


@pytest.mark.parametrize("grant", GRANTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_grant_before_the_question_suppresses(stage, pause_at, committed, grant, loss):
    """SES-1.9: committed between the loss's commit and its question: seen; the session is not written."""
    stage.create(assignee="ana" if loss == "task_reassigned" else "")
    for agent in ("ana", "bob") if loss != "task_reassigned" else ("bob",):
        stage.seat("reviewer", agent)
    session = stage.converse()
    before = stage.session(session)
    give, retained = GRANTS[grant]
    with in_background() as start, pause_at("before_question") as let_pass, listening() as told:
        call = start(LOSSES[loss], stage)
        committed("loss")
        until(somebody_waits, what="the question's fault point")
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("OFFICE_FAULT_POINTS")
            give(stage)
        let_pass()
        result = call.result(20)["session"]
    assert result == {"terminated": False, "retained": retained}
    assert stage.session(session) == before
    assert told.moved[counted(SUPPRESSED, reason=loss, retained=retained)] == 1


def test_a_move_back_before_the_question_suppresses(stage, pause_at, committed):
    """SES-1.9, SES-2.3: a seat that was left behind is one again when the task is back at its step in time."""
    stage.create()
    stage.seat("approver", "ana")
    stage.enter(step="wait")
    stage.add("reviewer")
    session = stage.converse()
    before = stage.session(session)
    with in_background() as start, pause_at("before_question") as let_pass:
        call = start(remove_participant, stage.engine, "loss", "T1", "ana", "reviewer")
        committed("loss")
        stage.enter(step="start")
        let_pass()
        assert call.result(20)["session"]["retained"] == "seat"
    assert stage.session(session) == before


def begin_a_claim(connection):
    """Claim the next run and take up its conversation, as an execution does; nothing is committed."""
    connection.execute(PATIENTLY)
    run = claims.claim(connection, uuid.uuid4())
    return sessions.obtain(connection, run.id, run.task_id, run.agent_profile_id, new_id())


def left(stage):
    """Let `ana` lose her last capacity on T1 while a run of hers is in line; nobody has asked about the session yet."""
    stage.create(assignee="ana")
    session = stage.converse()
    stage.board.execute("DELETE FROM seats")
    return session


def test_a_session_that_a_claim_takes_up_ends_after_it(stage, make_test_engine):
    """SES-1.4: ended while an execution takes it up: that is waited for, and then it ends from `running`."""
    session = left(stage)
    with make_test_engine().connect() as claimer, in_background() as start:
        obtained = begin_a_claim(claimer)
        call = start(stage.guard)
        until_blocked(stage.engine, like="%UPDATE sessions%")
        claimer.commit()
        result = call.result(20)
    assert obtained.id == session
    assert result == {"terminated": True, "session_id": str(session), "from_state": "running"}
    assert not stage.is_live()


def test_a_claim_that_waits_for_the_end_begins_anew(stage, make_test_engine):
    """SES-1.4, SES-1.11: a run claimed while its session is being ended gets a conversation of its own."""
    session = left(stage)
    with make_test_engine().connect() as terminator, make_test_engine().connect() as claimer, in_background() as start:
        terminator.execute(PATIENTLY)
        ended = sessions.complete(terminator, "T1", "ana", "participant_removed")
        call = start(begin_a_claim, claimer)
        until_blocked(stage.engine, like="%INSERT INTO sessions%")
        terminator.commit()
        obtained = call.result(20)
        claimer.commit()
    assert ended.session_id == str(session)
    assert obtained.is_new
    rows = {row["id"]: row["state"] for row in stage.board.rows("SELECT id, state FROM sessions")}
    assert rows == {session: "completed", obtained.id: "running"}


@pytest.mark.timeout(300)
def test_claims_and_ends_at_once_leave_one_live_session_at_most(stage, race):
    """SES-1.4, SES-1.11: 200 times: the old one has ended; live is the new one, or none, as the two came."""
    delays = random.Random(2)
    live = []

    def take_up(engine):
        with engine.begin() as connection:
            return begin_a_claim(connection)

    def end(engine, task):
        return stage.guard("ana", task, "participant_removed", engine)

    with in_background() as submit:
        for n in range(200):
            task = f"T{n}"
            old = cast(stage, task, ())
            stage.board.assigned(T0, task=task)
            obtained, result = race(
                submit,
                [take_up, lambda engine, task=task: end(engine, task)],
                [delays.uniform(0, LONGEST) for _ in range(2)],
            )
            assert result["terminated"]
            assert stage.session(old)["state"] == "completed"
            assert (result["session_id"] == str(obtained.id)) is not obtained.is_new
            live.append(stage.is_live(task))
            assert live[-1] is obtained.is_new
            stage.board.execute("DELETE FROM runs")


@pytest.mark.timeout(300)
def test_losses_and_a_deletion_at_once(stage, race):
    """SES-1.8, SES-1.10: whoever is first ends it, the other finds it ended: no deadlock, one reason."""
    delays = random.Random(3)
    with in_background() as submit:
        for n in range(100):
            task = f"T{n}"
            session = cast(stage, task, ("reviewer",))
            results = race(
                submit,
                [
                    lambda engine, task=task: remove_participant(engine, message(), task, "ana", "reviewer"),
                    lambda engine: delete_agent(engine, message(), "ana"),
                ],
                [delays.uniform(0, LONGEST) for _ in range(2)],
            )
            removed, deleted = results[0]["session"]["terminated"], results[1]["sessions"] == [str(session)]
            row = stage.session(session)
            assert row["state"] == "completed"
            assert row["reason"] == ("participant_removed" if removed else "agent_deleted")
            assert removed is not deleted
            stage.board.execute("INSERT INTO agents (id, workspace_id, name) VALUES ('ana', 'acme', 'ana')")


OVER_MANY_RUNS = {
    "a claim withdraws them": lambda engine, task: claim_seat(engine, message(), task, "reviewer", "ana", "bob"),
    "a reassignment cancels them": lambda engine, task: assign_task(engine, message(), task, "bob"),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("other", OVER_MANY_RUNS)
def test_a_deletion_beside_a_writer_of_the_same_runs(stage, race, other):
    """R07, SES-1.10: 100 rounds over 20 queued runs of the agent's: no call is lost; a deadlock would cost a retry."""
    delays = random.Random(4)
    with in_background() as submit:
        for n in range(100):
            task = f"T{n}"
            session = cast(stage, task, ("runner", "reviewer"))
            runs = [review(stage.board, task, order) for order in delays.sample(range(20), 20)]
            acts = [
                lambda engine, task=task: as_celery_would(OVER_MANY_RUNS[other], engine, task)[0],
                lambda engine: as_celery_would(delete_agent, engine, message(), "ana")[0],
            ]
            results = race(submit, acts, [delays.uniform(0, LONGEST) for _ in acts])
            assert len(results) == 2
            ours = stage.board.rows("SELECT id, status FROM runs WHERE agent_profile_id = 'ana'")
            assert {run["id"]: run["status"] for run in ours} == dict.fromkeys(runs, "cancelled")
            assert stage.session(session)["state"] == "completed"
            stage.board.execute("INSERT INTO agents (id, workspace_id, name) VALUES ('ana', 'acme', 'ana')")
            stage.board.execute("DELETE FROM runs")


def review(board, task, order):
    """Queue a review that waits for its retry, requested in that order."""
    payload = {"task_id": task, "roles": ["reviewer"]}
    return store_run(
        board, after(seconds=order), reason="task_review_requested", payload=payload, retry_at=after(days=order)
    )
