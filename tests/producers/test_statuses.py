"""Whom a change of status wakes, and whom it interrupts."""

from __future__ import annotations

from itertools import product

import pytest

from db.states import TASK_STATUSES
from tests.admission.rows import store_run
from tests.support import after

CLOSED = {"done", "cancelled"}


@pytest.fixture
def t1(acts):
    """Task T1, driven by ana, on an auto-starting step, with bob as its reviewer and approver."""
    acts.create(assignee="ana")
    acts.seat("reviewer", "bob")
    acts.seat("approver", "bob")
    return acts


def expected(before, now, comment=False):
    """PRO-5.1, from the criterion: whom a task without blockers or children wakes."""
    woken = set()
    if before == "blocked":
        woken.add(("ana", "task_unblocked"))
    if before in CLOSED and now in {"todo", "in_progress"}:
        woken.add(("ana", "task_reopened_via_comment" if comment else "task_reopened"))
    if now == "in_review":
        woken.add(("bob", "task_review_requested"))
    return woken


@pytest.mark.parametrize(
    ("before", "now"), [pair for pair in product(TASK_STATUSES, repeat=2) if len(set(pair)) == 2], ids="-".join
)
def test_every_move_wakes_whom_it_concerns(t1, before, now):
    """PRO-5.1: all thirty of them, by an agent and with no comment: whom, why, and one event."""
    t1.board.execute("UPDATE tasks SET status = :before", before=before)
    did = t1.status(now, by="bob")
    assert {(agent, reason) for agent, reason, _ in did.woken} == expected(before, now)
    assert len(did.wakes) == len(expected(before, now))
    assert (did.result["was"], did.result["status"]) == (before, now)
    assert ("interrupted" in did.result) == (now == "cancelled")
    told = t1.board.rows("SELECT type, changed FROM events WHERE mutation_id = :id", id=did.result["mutation_id"])
    assert told == [{"type": "task_status_changed", "changed": ["status"]}]
    assert t1.board.rows("SELECT status FROM tasks") == [{"status": now}]


@pytest.mark.parametrize("status", TASK_STATUSES)
def test_the_status_that_it_has_changes_nothing(t1, status):
    """PRO-5.1: a repeat is no change: nobody woken or interrupted, no event."""
    t1.board.execute("UPDATE tasks SET status = :status", status=status)
    did = t1.status(status)
    assert (did.wakes, "interrupted" in did.result) == ([], False)
    assert t1.board.rows("SELECT FROM events WHERE mutation_id = :id", id=did.result["mutation_id"]) == []


@pytest.mark.parametrize(("before", "now"), list(product(sorted(CLOSED), ["todo", "in_progress"])), ids="-".join)
@pytest.mark.parametrize("comment", ["c1", ""], ids=["its id given", "its id made"])
def test_a_reopening_with_a_comment(t1, before, now, comment):
    """PRO-5.1, PRO-1: one wake for both, under the comment's key; the comment is on the task."""
    t1.board.execute("UPDATE tasks SET status = :before", before=before)
    did = t1.status(now, comment=comment, body="not yet")
    [row] = t1.board.rows("SELECT * FROM comments")
    wake = did.wake("task_reopened_via_comment")
    assert did.woken == [("ana", "task_reopened_via_comment", "queued")]
    assert wake["key"] == f"task_reopened_via_comment:{row['id']}:ana"
    assert wake["payload"] == {"task_id": "T1", "comment_id": row["id"]}
    assert (row["id"] == "c1" or not comment, row["body"], row["author_type"]) == (True, "not yet", "user")


def test_a_reopening_by_a_comment_mentions_too(t1):
    """PRO-5.1, PRO-5.2: the mentioned hear of the comment, the assignee of the reopening."""
    t1.status("done")
    did = t1.status("todo", comment="c1", body="@bob and @ana")
    assert [(agent, reason) for agent, reason, _ in did.woken] == [
        ("ana", "task_mentioned"), ("ana", "task_reopened_via_comment"), ("bob", "task_mentioned"),
    ]  # fmt: skip


def test_a_comment_that_comes_with_any_other_move_is_a_comment(t1):
    """PRO-5.2: to open work its assignee hears of it; to closed work only the mentioned."""
    assert t1.status("in_progress", comment="c1", body="go").woken == [("ana", "task_comment", "queued")]
    assert t1.status("done", comment="c2", body="@bob").woken == [("bob", "task_mentioned", "queued")]


def test_a_comment_without_a_move_is_a_comment(t1):
    """PRO-5.2: the status that it has, and something to say: no status event."""
    did = t1.status("todo", comment="c1", body="hello")
    assert did.woken == [("ana", "task_comment", "queued")]
    assert t1.board.rows("SELECT type FROM events WHERE mutation_id = :id", id=did.result["mutation_id"]) == [
        {"type": "task_commented"}
    ]


def test_a_review_wakes_each_reviewer_and_approver_once(acts):
    """PRO-5.1: template seats and the task's own, one wake per agent, its roles sorted; no other role, step or task."""
    from office_tasks import admin

    for agent in ("cleo", "dora", "eve"):
        admin.create_agent(acts.engine, "acme", agent)
    acts.create(assignee="ana")
    acts.create("T2")
    for role, agent, task, step in [
        ("reviewer", "bob", None, "start"),
        ("reviewer", "bob", "T1", "start"),
        ("approver", "bob", "T1", "start"),
        ("approver", "cleo", None, "start"),
        ("watcher", "dora", "T1", "start"),
        ("reviewer", "dora", "T1", "wait"),
        ("reviewer", "dora", None, "wait"),
        ("approver", "eve", "T2", "start"),
        ("reviewer", "ana", "T1", "start"),
    ]:
        acts.seat(role, agent, task, step)
    did = acts.status("in_review")
    roles = {wake["agent_profile_id"]: wake["payload"] for wake in did.wakes}
    assert roles == {
        "ana": {"task_id": "T1", "roles": ["reviewer"]},
        "bob": {"task_id": "T1", "roles": ["approver", "reviewer"]},
        "cleo": {"task_id": "T1", "roles": ["approver"]},
    }
    assert [wake["outcome"] for wake in did.wakes] == ["queued"] * 3


def test_a_review_without_reviewers_wakes_nobody(acts):
    """PRO-5.1: the runner is none."""
    acts.create(assignee="ana")
    assert acts.status("in_review").wakes == []


def test_a_task_without_a_runner_wakes_nobody(acts):
    """PRO-5.1: unblocked, reopened: there is nobody to tell."""
    acts.create()
    for status in ("blocked", "todo", "done", "todo"):
        assert acts.status(status).wakes == []


def test_a_cancellation_interrupts_everybody_on_the_task(t1):
    """PRO-5.1: whoever works on it, and nobody who works on another task, waits, or began since."""
    task = {"task_id": "T1"}
    runs = {
        "runner": store_run(t1.board, payload=task, status="claimed"),
        "reviewer": store_run(t1.board, agent="bob", reason="task_review_requested", payload=task, status="claimed"),
        "elsewhere": store_run(t1.board, payload={"task_id": "T2"}, status="claimed"),
        "waiting": store_run(t1.board, agent="bob", payload=task),
        "since": store_run(t1.board, agent="bob", reason="later", payload=task, status="claimed"),
    }
    t1.board.execute("UPDATE runs SET claimed_at = requested_at WHERE status = 'claimed'")
    t1.board.execute("UPDATE runs SET claimed_at = :at WHERE id = :id", id=runs["since"], at=after(hours=2))
    did = t1.status("cancelled", at=after(hours=1))
    assert sorted(did.result["interrupted"]) == sorted([str(runs["runner"]), str(runs["reviewer"])])
    asked = {name for name, run_id in runs.items() if t1.board.run(run_id)["cancel_requested_at"]}
    assert asked == {"runner", "reviewer"}


def test_one_mutation_wakes_an_agent_once_for_one_reason(t1):
    """PRO-3.6, PRO-5.2: mentioned three times, one wake; another reason is another wake."""
    assert t1.comment(body="@ana @ana, @[ana]", by="bob").woken == [
        ("ana", "task_comment", "queued"),
        ("ana", "task_mentioned", "queued"),
    ]


def test_two_reactions_that_ask_for_the_same_wake_are_one(t1, monkeypatch):
    """PRO-3.6: whoever asks twice, in one mutation, for one agent, task and reason: one wake, and the numbers go on."""
    from office_tasks.producers import reactions

    monkeypatch.setattr(reactions, "REACTIONS", reactions.REACTIONS * 2)
    did = t1.comment(body="@ana @bob")
    assert [(agent, reason) for agent, reason, _ in did.woken] == [
        ("ana", "task_comment"), ("ana", "task_mentioned"), ("bob", "task_mentioned"),
    ]  # fmt: skip
    assert [wake["id"].rpartition("#")[2] for wake in did.wakes] == ["1", "2", "3"]
