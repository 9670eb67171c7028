"""Resuming a workspace: what a later assignment made moot is closed, the rest passes the gates once (PRO-6.4)."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session
from structlog.testing import capture_logs

from office_tasks import admin
from office_tasks.in_session import enqueue
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.comments import add_comment
from office_tasks.producers.creation import create_task, onboard_task
from office_tasks.producers.pauses import pause_workspace, resume_workspace
from recovery.relay import relay_once
from tests.support import T0, after


@pytest.fixture
def paused(board):
    """The office, paused; task T1 without an assignee, T2 with ana, woken before the pause."""
    create_task(board.engine, "c1", "acme", "one", task_id="T1", step_id="start", instant=T0)
    create_task(board.engine, "c2", "acme", "two", task_id="T2", step_id="start", assignee_id="ana", instant=T0)
    pause_workspace(board.engine, "p", "acme", instant=T0)
    return board


def assign(board, number, agent, task="T1"):
    return assign_task(board.engine, f"m{number}", task, agent, instant=after(minutes=number))


def resume(board, minutes=60):
    with capture_logs() as logs:
        result = resume_workspace(board.engine, "r", "acme", after(minutes=minutes))
    return result, [entry for entry in logs if entry["event"] == "wake_superseded"]


def states(board):
    return {row["id"]: (row["state"], row["outcome"]) for row in board.wakes() if row["id"] != "c2#1"}


CLOSED = ("superseded", None)


def test_a_later_assignment_closes_the_earlier_ones(paused):
    """PRO-6.4, PRO-2.5: of A, B, A only the last passes; each of the others is superseded and logged."""
    for number, agent in enumerate(("ana", "bob", "ana"), start=1):
        assert assign(paused, number, agent)["wakes"][0]["state"] == "owed"
    result, logged = resume(paused)
    assert states(paused) == {"m1#1": CLOSED, "m2#1": CLOSED, "m3#1": ("decided", "queued")}
    assert (result["superseded"], result["replayed"]) == (2, {"queued": 1})
    assert [(each["wake_id"], each["agent_profile_id"], each["generation"]) for each in logged] == [
        ("m1#1", "ana", 1),
        ("m2#1", "bob", 2),
    ]
    assert {each["task_id"] for each in logged} == {"T1"}
    assert {each["log_level"] for each in logged} == {"info"}


def test_an_unassignment_closes_what_came_before(paused):
    """PRO-6.4: the generation moved though nobody was woken."""
    assign(paused, 1, "ana")
    assign(paused, 2, "")
    result, _ = resume(paused)
    assert states(paused) == {"m1#1": CLOSED}
    assert (result["superseded"], result["replayed"], paused.count("runs")) == (1, {}, 1)


@pytest.mark.parametrize(("then", "closed"), [(None, False), ("ana", False), ("bob", True), ("", True)])
def test_a_keyless_assignment_goes_with_its_agents_seat(paused, then, closed):
    """PRO-6.4: without a generation it is moot once its agent is no longer the runner, and not before."""
    task = onboard_task(paused.engine, "o", "acme", "ana", "welcome", after(seconds=1))["task_id"]
    keyless = [row["id"] for row in paused.wakes() if row["state"] == "owed" and row["key"] is None]
    assert keyless
    if then is not None:
        assign(paused, 1, then, task)
    resume(paused)
    assert {states(paused)[wake_id] == CLOSED for wake_id in keyless} == {closed}


def test_an_equal_generation_is_left_to_gate_three(paused):
    """PRO-6.4: an occurrence that has its run already is `deduped`, not superseded."""
    assign(paused, 1, "ana")
    key = "task_assigned:T1:ana:1"
    paused.execute(
        "INSERT INTO runs (id, agent_profile_id, reason, payload, idempotency_key, requested_at) "
        "VALUES (gen_random_uuid(), 'ana', 'task_assigned', '{}', :key, :at)",
        key=key,
        at=after(minutes=1),
    )
    result, logged = resume(paused)
    assert states(paused) == {"m1#1": ("decided", "deduped")}
    assert (result["superseded"], logged) == (0, [])


def test_nothing_else_is_superseded(paused):
    """PRO-6.4: comments, mentions, other wakes and other workspaces pass, whatever became of the assignment."""
    add_comment(paused.engine, "k1", "T2", "C1", "look, @bob", "user", "u", after(minutes=1))
    with Session(paused.engine) as session:
        other = enqueue(session, "ana", "task_assigned", {"task_id": "nowhere"})
        named = enqueue(session, "ana", "manual_resume", {"task_id": "T2"})
        session.commit()
    assign(paused, 2, "bob", "T2")
    admin.create_workspace(paused.engine, "quiet", workflow_id="flow")
    admin.create_agent(paused.engine, "quiet", "quinn")
    pause_workspace(paused.engine, "p2", "quiet", instant=T0)
    create_task(paused.engine, "q", "quiet", "q", task_id="Q", workflow_id="flow", assignee_id="quinn", instant=T0)
    assign_task(paused.engine, "q2", "Q", "quinn", instant=after(minutes=1))
    before = set(states(paused))
    result, _ = resume(paused)
    left = states(paused)
    assert result["superseded"] == 0
    assert {wake_id for wake_id in before if left[wake_id][0] == "owed"} == {"q#1", "q2#1"}
    assert {left[f"{each}#1"] for each in (other, named, "k1", "m2")} == {("decided", "queued")}


def test_what_is_owed_is_replayed_oldest_first_and_once(paused):
    """PRO-6.4: whatever its reason; a second resume and the relay find nothing more."""
    for number, task in enumerate(("T1", "T2"), start=1):
        assign(paused, number, "bob", task)
    add_comment(paused.engine, "k0", "T2", "C1", "hello", "user", "u", after(seconds=30))
    result, _ = resume(paused)
    assert result["replayed"] == {"queued": 3}
    order = paused.rows("SELECT w.id FROM runs r JOIN wakes w ON w.run_id = r.id WHERE w.id <> 'c2#1' ORDER BY r.id")
    assert [row["id"] for row in order] == ["k0#1", "m1#1", "m2#1"]
    again = resume_workspace(paused.engine, "r2", "acme", after(minutes=61))
    assert (again["changed"], again["replayed"]) == (False, {})
    assert relay_once(paused.engine, None)["decided"] == 0


def test_a_resume_that_died_is_replayed_by_the_relay(paused, cut_off, at):
    """PRO-6.2, PRO-6.4: superseded with the commit that opened the gate; the relay admits the rest."""
    assign(paused, 1, "ana")
    assign(paused, 2, "bob")
    assign(paused, 3, "bob", "T2")
    cut_off(resume_workspace, paused.engine, "r", "acme", after(minutes=4))
    assert states(paused) == {"m1#1": CLOSED, "m2#1": ("owed", None), "m3#1": ("owed", None)}
    assert relay_once(at(minutes=5), None) == {"settled": 1, "failed": 0, "decided": 2, "still_owed": 0, "published": 0}
    assert {states(paused)["m2#1"], states(paused)["m3#1"]} == {("decided", "queued")}


def test_a_resume_that_did_not_commit_closed_nothing_and_says_so(paused, cut_off):
    """PRO-6.4, R12: what is logged as superseded is superseded."""
    assign(paused, 1, "ana")
    assign(paused, 2, "bob")
    with capture_logs() as logs:
        cut_off(resume_workspace, paused.engine, "r", "acme", after(minutes=3), point="before_commit")
    assert states(paused) == {"m1#1": ("owed", None), "m2#1": ("owed", None)}
    assert [entry for entry in logs if entry["event"] == "wake_superseded"] == []


def test_an_old_resume_that_comes_again_closes_nothing(paused):
    """PRO-6.1, PRO-6.4: redelivered in the next pause, it neither opens the gate nor says that it closed a wake."""
    assign(paused, 1, "ana")
    resume(paused, minutes=2)
    pause_workspace(paused.engine, "p2", "acme", instant=after(minutes=3))
    assign(paused, 4, "ana")
    assign(paused, 5, "bob")
    _, logged = resume(paused, minutes=6)
    assert logged == []
    assert states(paused)["m4#1"] == states(paused)["m5#1"] == ("owed", None)
