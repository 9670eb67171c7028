"""What waited for others: blockers that are all done, children that are all over."""

from __future__ import annotations

import pytest

from office_tasks import keys
from office_tasks.producers import statuses
from tests.faults.waits import holding, in_background, until_blocked
from tests.producers.acts import Acts
from tests.support import Board, after

BLOCKERS = ("task_blockers_resolved",)


@pytest.fixture
def waiting(acts):
    """T1, driven by ana, waits for B1, B2 and B3."""
    return wait_for(acts, "B1", "B2", "B3")


def wait_for(acts, *blockers, task="T1", assignee="ana"):
    acts.create(task, assignee)
    for blocker in blockers:
        if not acts.board.rows("SELECT FROM tasks WHERE id = :id", id=blocker):
            acts.create(blocker)
        acts.block(task, blocker)
    return acts


def woken(did):
    return [(wake["agent_profile_id"], wake["reason"], wake["key"]) for wake in did.wakes]


def test_the_last_blocker_that_is_done_wakes_the_dependent(waiting):
    """PRO-5.1, PRO-1.5: none before it; the key has the digest of the whole set, the payload names the dependent."""
    assert [waiting.status("done", task).wakes for task in ("B2", "B1")] == [[], []]
    did = waiting.status("done", "B3")
    assert woken(did) == [
        ("ana", "task_blockers_resolved", keys.task_blockers_resolved("T1", "ana", ["B1", "B2", "B3"]))
    ]
    assert did.wakes[0]["payload"] == {"task_id": "T1"}
    assert did.wakes[0]["outcome"] == "queued"


@pytest.mark.parametrize("status", ["todo", "in_progress", "in_review", "blocked", "cancelled"])
def test_a_blocker_that_is_not_done_still_blocks(waiting, status):
    """PRO-5.1: done is done: a cancelled blocker resolves nothing, nor does cancelling the last one wake anybody."""
    waiting.board.execute("UPDATE tasks SET status = :status WHERE id = 'B1'", status=status)
    assert [waiting.status("done", task).wakes for task in ("B2", "B3")] == [[], []]


def test_one_task_may_block_many(acts):
    """PRO-5.1: each dependent that is ready is woken, in the order of their ids; the others are not."""
    wait_for(acts, "B1", "B2", task="T3")
    wait_for(acts, "B1", task="T2", assignee="bob")
    wait_for(acts, "B1", task="T1")
    wait_for(acts, "B1", task="T4", assignee="")
    did = acts.status("done", "B1")
    assert [(agent, key.split(":")[1]) for agent, _, key in woken(did)] == [("ana", "T1"), ("bob", "T2")]


def test_one_agent_is_woken_for_each_of_its_tasks(acts):
    """PRO-3.6: once per task and reason, so twice for two tasks."""
    wait_for(acts, "B1", task="T1")
    wait_for(acts, "B1", task="T2")
    assert [wake["payload"] for wake in acts.status("done", "B1").wakes] == [{"task_id": "T1"}, {"task_id": "T2"}]


@pytest.mark.parametrize("others", [["done"], ["cancelled"], ["done", "cancelled"], []], ids=str)
def test_the_parent_is_woken_when_all_its_children_are_over(acts, others):
    """PRO-5.1, PRO-1.5: done or cancelled, each of them; the key has the digest of them all."""
    acts.create(assignee="ana")
    children = [f"C{n}" for n in range(len(others) + 1)]
    for child in children:
        acts.create(child, parent_id="T1")
    for child, status in zip(children[1:], others, strict=True):
        assert acts.status(status, child).wakes == []
    assert woken(acts.status("done", "C0")) == [
        ("ana", "task_children_completed", keys.task_children_completed("T1", "ana", children))
    ]


@pytest.mark.parametrize("status", ["todo", "in_progress", "in_review", "blocked"])
def test_a_child_that_is_open_holds_the_parent(acts, status):
    """PRO-5.1: the parent is not woken before it is over."""
    acts.create(assignee="ana")
    for child in ("C1", "C2"):
        acts.create(child, parent_id="T1")
    acts.board.execute("UPDATE tasks SET status = :status WHERE id = 'C2'", status=status)
    assert acts.status("done", "C1").wakes == []


def test_nothing_to_wait_for_is_no_occurrence(acts):
    """PRO-1.5: no dependents, no parent: the empty set wakes nobody."""
    acts.create(assignee="ana")
    assert acts.status("done").wakes == []


def test_one_task_may_end_both(acts):
    """PRO-5.1, PRO-3.6: the last blocker and the last child of one task: two reasons, two wakes."""
    acts.create(assignee="ana")
    acts.create("C1", parent_id="T1")
    acts.block("T1", "C1")
    assert [reason for _, reason, _ in woken(acts.status("done", "C1"))] == [
        "task_blockers_resolved", "task_children_completed",
    ]  # fmt: skip


@pytest.mark.parametrize("apart", [{"minutes": 1}, {"days": 40}], ids=str)
def test_the_same_blockers_resolved_again_are_suppressed(waiting, apart):
    """PRO-5.4: resolved, reopened and resolved again digests the same: accepted, whenever it is; a new set is not."""
    first = [waiting.status("done", task) for task in ("B1", "B2", "B3")][-1]
    waiting.status("in_progress", "B2")
    again = waiting.status("done", "B2", at=after(minutes=60) + (after(**apart) - after()))
    assert woken(again) == woken(first)
    assert (again.wakes[0]["outcome"], again.wakes[0]["run_id"]) == ("deduped", first.wakes[0]["run_id"])
    assert again.result["runs"] == []
    waiting.create("B4")
    waiting.block("T1", "B4")
    assert waiting.status("done", "B4", at=after(days=41)).wakes[0]["outcome"] == "queued"


@pytest.mark.parametrize("apart", [{"minutes": 1}, {"days": 40}], ids=str)
def test_the_same_children_completed_again_are_suppressed(acts, apart):
    """PRO-5.4: an unchanged set of children digests the same: accepted; one more child is another set."""
    acts.create(assignee="ana")
    acts.create("C1", parent_id="T1")
    first = acts.status("done", "C1")
    acts.status("todo", "C1")
    again = acts.status("done", "C1", at=after(minutes=60) + (after(**apart) - after()))
    assert woken(again) == woken(first)
    assert (again.wakes[0]["outcome"], again.result["runs"]) == ("deduped", [])
    acts.create("C2", parent_id="T1")
    assert acts.status("done", "C2", at=after(days=41)).wakes[0]["outcome"] == "queued"


@pytest.fixture
def roomy(board, make_test_engine):
    """The producers of an office with a connection for everybody who waits at once."""
    return Acts(Board(make_test_engine(pool_size=8)))


CONCURRENT = {
    "blockers": (lambda acts: wait_for(acts, "B1", "B2"), "task_blockers_resolved"),
    "children": (
        lambda acts: [acts.create(assignee="ana"), *(acts.create(child, parent_id="T1") for child in ("B1", "B2"))],
        "task_children_completed",
    ),
}


def finish_at_once(acts, tag, start):
    return [
        start(statuses.set_task_status, acts.engine, f"{tag}-{task}", task, "done", "", instant=after(hours=9))
        for task in ("B1", "B2")
    ]


@pytest.mark.parametrize(("arrange", "reason"), CONCURRENT.values(), ids=CONCURRENT)
def test_two_that_are_done_at_once_wake_once(roomy, arrange, reason):
    """PRO-5.1: two transactions, neither sees the other's change yet: both wait for T1, the second sees both."""
    arrange(roomy)
    with holding(roomy.engine, "SELECT FROM tasks WHERE id = 'T1' FOR UPDATE") as held, in_background() as start:
        calls = finish_at_once(roomy, "m-at-once", start)
        until_blocked(roomy.engine, count=2)
        held.rollback()
        wakes = [wake for call in calls for wake in call.result()["wakes"]]
    assert [(wake["agent_profile_id"], wake["reason"], wake["outcome"]) for wake in wakes] == [
        ("ana", reason, "queued")
    ]


@pytest.mark.parametrize(("arrange", "reason"), CONCURRENT.values(), ids=CONCURRENT)
def test_however_two_that_are_done_at_once_meet_one_wakes(roomy, arrange, reason):
    """PRO-5.1: fifty meetings that nobody arranged: never missed, never twice."""
    arrange(roomy)
    with in_background() as start:
        for n in range(50):
            roomy.board.execute("UPDATE tasks SET status = 'todo'")
            calls = finish_at_once(roomy, f"m-{n}-at-once", start)
            wakes = [wake["reason"] for call in calls for wake in call.result()["wakes"]]
            assert wakes == [reason], n
