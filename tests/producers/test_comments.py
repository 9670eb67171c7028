"""Whom a comment wakes."""

from __future__ import annotations

from itertools import product

import pytest

from db.states import TASK_STATUSES
from office_tasks import admin
from office_tasks.errors import InvalidInput
from office_tasks.producers import comments
from tests.support import after


@pytest.fixture
def t1(acts):
    """Task T1, driven by ana; bob and cleo are there too, and olga is of another workspace."""
    admin.create_agent(acts.engine, "acme", "cleo")
    admin.create_workspace(acts.engine, "other")
    admin.create_agent(acts.engine, "other", "olga")
    acts.create(assignee="ana")
    return acts


@pytest.mark.parametrize(
    ("status", "author", "mentions"), list(product(TASK_STATUSES, ["", "ana", "bob"], ["", "@ana", "@bob @cleo"]))
)
def test_a_comment_wakes_whom_it_concerns(t1, status, author, mentions):
    """PRO-5.2: the assignee unless it wrote it or the task is closed; the mentioned but its author, closed or not."""
    t1.board.execute("UPDATE tasks SET status = :status", status=status)
    expected = {("ana", "task_comment")} if author != "ana" and status not in ("done", "cancelled") else set()
    expected |= {(agent, "task_mentioned") for agent in ("ana", "bob", "cleo") if f"@{agent}" in mentions} - {
        (author, "task_mentioned")
    }
    did = t1.comment(body=f"look {mentions}", by=author)
    assert {(agent, reason) for agent, reason, _ in did.woken} == expected
    assert len(did.wakes) == len(expected)
    assert {wake["key"] for wake in did.wakes} == {f"{reason}:c1:{agent}" for agent, reason in expected}
    assert {str(wake["payload"]) for wake in did.wakes} <= {str({"task_id": "T1", "comment_id": "c1"})}


def test_only_agents_of_the_workspace_are_mentioned(t1):
    """PRO-5.2: what is no agent, or another workspace's, is text."""
    did = t1.comment(body="@olga @ghost @acme @[no one] mail bob@cleo", by="ana")
    assert did.wakes == []


def test_a_user_of_an_agents_id_is_somebody_else(t1):
    """PRO-5.2: the user `ana` comments: the agent `ana` wrote nothing, so it is woken and mentioned."""
    result = comments.add_comment(t1.engine, "m", "T1", "c1", "@ana", "user", "ana", after(hours=1))
    assert [(wake["agent_profile_id"], wake["reason"]) for wake in result["wakes"]] == [
        ("ana", "task_comment"),
        ("ana", "task_mentioned"),
    ]


def test_comments_never_merge(t1):
    """PRO-5.2, ADM-4.1: two in the same second are two runs of the assignee."""
    outcomes = [t1.comment(f"c{n}", at=after(hours=1)).woken for n in (1, 2)]
    assert outcomes == [[("ana", "task_comment", "queued")]] * 2
    assert t1.board.count("runs") == 3


def test_a_comment_sent_again_is_one_occurrence(t1):
    """PRO-1.1: the same comment in another message, within the day and long after: written once, and deduplicated."""
    first = t1.comment(body="@bob")
    for at in (after(hours=1), after(days=9)):
        again = t1.comment(body="@bob", at=at)
        assert {outcome for _, _, outcome in again.woken} == {"deduped"}
        assert {wake["run_id"] for wake in again.wakes} == {wake["run_id"] for wake in first.wakes}
    assert t1.board.count("comments") == 1


@pytest.mark.parametrize(
    "other", [{"body": "something else"}, {"by": "bob"}, {"task": "T2"}], ids=["body", "author", "task"]
)
def test_the_id_of_another_comment_is_refused(t1, other):
    """PRO-1.1: it would take the other's key: `InvalidInput`, nothing written; with a change of status as well."""
    t1.create("T2")
    t1.comment("c1", "hello")
    before = (t1.board.count("wakes"), t1.board.count("mutations"), t1.board.count("events"))
    with pytest.raises(InvalidInput, match="c1"):
        t1.comment("c1", **{"body": "hello", **other})
    with pytest.raises(InvalidInput, match="c1"):
        t1.status("in_progress", comment="c1", body="another body")
    assert (t1.board.count("wakes"), t1.board.count("mutations"), t1.board.count("events")) == before
    assert t1.board.rows("SELECT status FROM tasks WHERE id = 'T1'") == [{"status": "todo"}]


def test_a_wake_that_fails_stops_no_other(t1):
    """PRO-5.3: one agent is stopped, of another nothing can be read; each wake has an outcome of its own."""
    t1.board.execute("UPDATE agents SET status = 'stopped' WHERE id = 'ana'")
    did = t1.comment(body="@bob @cleo")
    assert did.woken == [
        ("ana", "task_comment", "none"),
        ("bob", "task_mentioned", "queued"),
        ("cleo", "task_mentioned", "queued"),
    ]
    assert [wake["refusal"] for wake in did.result["wakes"]] == ["agent_not_wakeable", None, None]


def test_a_wake_whose_admission_breaks_stops_no_other(t1):
    """PRO-5.3, ADM-7.3: bob's run cannot be inserted: his wake stays owed, with the error; the others are decided."""
    board = t1.board
    board.execute(
        "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no room'; END $$"
    )
    board.execute(
        "CREATE TRIGGER broken BEFORE INSERT ON runs FOR EACH ROW WHEN (NEW.agent_profile_id = 'bob') "
        "EXECUTE FUNCTION broken()"
    )
    try:
        did = t1.comment(body="@bob @cleo")
    finally:
        board.execute("DROP TRIGGER broken ON runs")
        board.execute("DROP FUNCTION broken")
    states = {wake["agent_profile_id"]: (wake["state"], wake["outcome"]) for wake in did.wakes}
    assert states == {"ana": ("decided", "queued"), "bob": ("owed", None), "cleo": ("decided", "queued")}
    [owed] = [wake for wake in did.wakes if wake["state"] == "owed"]
    assert owed["last_error"].startswith("P0001")
    assert owed["next_attempt_at"] is not None
