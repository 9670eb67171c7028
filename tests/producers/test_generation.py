"""The assignment generation: bumped by every committed assignment, and by nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from office_tasks import admin
from office_tasks.producers import assignments
from office_tasks.producers.producer import Producer
from tests.faults.waits import holding, in_background, until_blocked
from tests.support import after


def keys(dids):
    return [wake["key"] for did in dids for wake in did.wakes]


def test_each_committed_assignment_has_the_next_generation(acts):
    """PRO-2.1: to a new agent, to the same again, to nobody; what is returned is what was committed."""
    acts.create()
    seen = [(acts.assign(agent=agent).result["generation"], acts.generation()) for agent in ("ana", "ana", "", "bob")]
    assert seen == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_an_assignment_whose_generation_cannot_be_read_back_does_not_commit(acts):
    """PRO-2.1: the row refuses the write without an error; the seat goes with it."""
    from db.errors import DbError

    acts.create()
    board = acts.board
    board.execute("CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$")
    board.execute("CREATE TRIGGER skip BEFORE UPDATE ON tasks FOR EACH ROW EXECUTE FUNCTION skip()")
    try:
        with pytest.raises(DbError):
            acts.assign()
    finally:
        board.execute("DROP TRIGGER skip ON tasks")
        board.execute("DROP FUNCTION skip")
    assert (board.count("seats"), board.count("wakes"), board.count("mutations"), acts.generation()) == (0, 0, 1, 0)


def test_a_creation_commits_one_or_none(acts):
    """PRO-2.2: a runner seat commits 1, any other creation 0; bringing an agent on board writes a seat."""
    assert acts.create("T1", "ana").result["generation"] == acts.generation("T1") == 1
    assert acts.create("T2").result["generation"] == acts.generation("T2") == 0
    onboarded = acts.onboard().result
    assert onboarded["generation"] == acts.generation(onboarded["task_id"]) == 1


@pytest.mark.parametrize("producer", [Producer.TASK_CREATED, Producer.TASK_UPDATED])
def test_on_the_wire_zero_is_not_absent(acts, producer):
    """PRO-2.2: 0 names no assignment and wakes nobody; absent and null wake, without a key."""
    acts.create()
    assert acts.hear(producer, assignee="ana", generation=0).result == "generation_names_no_assignment"
    assert keys([acts.hear(producer, assignee="ana", generation=None)]) == [None]
    assert keys([acts.hear(producer, assignee="ana", generation=7)]) == ["task_assigned:T1:ana:7"]


def test_what_is_no_assignment_bumps_nothing(acts):
    """PRO-2.3: a step move, a rename, a priority change; nor a status, a comment or an event."""
    acts.create(assignee="ana")
    acts.enter(step="wait", transition="t1")
    acts.enter(step="start", transition="t2")
    acts.board.execute("UPDATE tasks SET title = 'renamed', priority = 'high'")
    acts.status("in_progress")
    acts.comment()
    acts.hear(assignee="bob")
    assert acts.generation() == 1


def test_two_assignments_at_once_are_two_occurrences(acts, admission_engine):
    """PRO-2.4: both wait for the task's row; two generations, two keys, two wakes."""
    acts.create()
    with holding(acts.engine, "SELECT FROM tasks WHERE id = 'T1' FOR UPDATE") as held, in_background() as start:
        calls = [
            start(assignments.assign_task, acts.engine, f"at-once-{n}", "T1", agent, "", after(minutes=9))
            for n, agent in enumerate(["ana", "bob"])
        ]
        until_blocked(admission_engine, count=2)
        held.rollback()
        results = [call.result() for call in calls]
    assert sorted(result["generation"] for result in results) == [1, 2]
    assert {wake["outcome"] for result in results for wake in result["wakes"]} == {"queued"}
    assert len({wake["key"] for wake in acts.board.wakes()}) == acts.board.count("runs") == 2


def test_a_hundred_assignments_at_once_are_a_hundred_generations(acts):
    """PRO-2.4: to one agent, from four threads."""
    acts.create()
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(
            lambda n: assignments.assign_task(acts.engine, f"at-once-{n}", "T1", "ana", "", after(minutes=9)),
            range(100),
        ))  # fmt: skip
    assert sorted(result["generation"] for result in results) == list(range(1, 101))
    assert len({wake["key"] for wake in acts.board.wakes()}) == 100


ROUNDS = [("ana", "bob", "ana"), ("ana", "", "ana"), ("ana", "", "bob", "", "ana")]


@pytest.mark.parametrize("agents", ROUNDS, ids="-".join)
def test_back_again_outside_the_window(acts, agents):
    """PRO-2.5: a minute apart: A is woken again, by a run of its own."""
    acts.create()
    dids = [acts.assign(agent=agent) for agent in agents]
    assert [wake["outcome"] for did in dids for wake in did.wakes] == ["queued"] * len([a for a in agents if a])
    assert dids[-1].wakes[0]["run_id"] != dids[0].wakes[0]["run_id"]
    assert keys(dids[-1:]) == [f"task_assigned:T1:ana:{len(agents)}"]


@pytest.mark.parametrize("agents", ROUNDS, ids="-".join)
def test_back_again_inside_the_window_while_the_first_run_waits(acts, agents):
    """PRO-2.5, ADM-4.2: within 5 s, its first run not yet taken: that run is what wakes A, never `deduped`."""
    acts.create(at=after())
    dids = [acts.assign(agent=agent, at=after(seconds=n)) for n, agent in enumerate(agents)]
    assert (dids[-1].wakes[0]["outcome"], dids[-1].result["runs"]) == ("coalesced", [])
    assert dids[-1].wakes[0]["run_id"] == dids[0].wakes[0]["run_id"]


@pytest.mark.parametrize("agents", ROUNDS, ids="-".join)
def test_back_again_inside_the_window_when_the_first_run_was_taken(acts, agents):
    """PRO-2.5: a run that works already wakes nobody: A has a second one, within the same 5 s."""
    acts.create(at=after())
    first = acts.assign(agent=agents[0], at=after())
    acts.start(first)
    dids = [acts.assign(agent=agent, at=after(seconds=n)) for n, agent in enumerate(agents[1:], 1)]
    assert dids[-1].wakes[0]["outcome"] == "queued"
    assert dids[-1].wakes[0]["run_id"] != first.wakes[0]["run_id"]


@pytest.mark.parametrize("hours", [23, 24, 25, 24 * 31])
def test_the_same_agent_again_much_later(acts, hours):
    """PRO-2.5, C01: before, at and after the 24 h of the duplicate look-back it is `queued`, never `deduped`."""
    acts.create(at=after())
    acts.assign(at=after())
    assert acts.assign(at=after(hours=hours)).wakes[0]["outcome"] == "queued"
    assert acts.board.count("runs") == 2


def test_an_earlier_seat_does_not_come_back(acts):
    """PRO-2.6: assigned at two steps, then unassigned: no seat is left, so a move back wakes nobody."""
    acts.create(assignee="ana")
    acts.enter(step="wait", transition="t1")
    acts.assign(agent="bob")
    assert acts.board.count("seats") == 2
    acts.assign(agent="")
    assert acts.board.count("seats") == 0
    assert acts.enter(step="start", transition="t2").wakes == []


def test_the_late_producer_of_an_earlier_assignment_mints_its_own_key(acts):
    """PRO-1.2: with assignments 1, 2, 3 committed, what assignment 1 owes is still admitted under key 1."""
    from office_tasks.producers.after import admit_owed, stored_wakes

    admin.create_agent(acts.engine, "acme", "cleo")
    acts.create()
    acts.board.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
    dids = [acts.assign(agent=agent) for agent in ("ana", "bob", "cleo")]
    acts.board.execute("DELETE FROM pauses")
    answers = [
        admit_owed(acts.engine, wake, after(hours=1))
        for did in dids
        for wake in stored_wakes(acts.engine, did.result["mutation_id"])
    ]
    assert [(answer.key, answer.outcome) for answer in answers] == [
        ("task_assigned:T1:ana:1", "queued"),
        ("task_assigned:T1:bob:2", "queued"),
        ("task_assigned:T1:cleo:3", "queued"),
    ]
    assert keys([acts.hear(assignee="ana", generation=1)]) == ["task_assigned:T1:ana:1"]
