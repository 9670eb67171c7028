"""One occurrence seen by both convergent producers, in either order, at once: one key, one run (PRO-3.2)."""

from __future__ import annotations

from threading import Barrier

import pytest

from office_tasks.producers import bare, inbound
from office_tasks.producers.after import settle
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.creation import create_task
from office_tasks.producers.producer import Producer
from tests.faults.waits import in_background
from tests.support import T0, after

TIMES = 200


def hear(engine, wake_id, task, agent, generation, producer=Producer.TASK_UPDATED, at=None):
    """Hear an event of the assignment."""
    said = inbound.heard(engine, wake_id, inbound.event(producer, task, agent, generation))
    return bare.enqueue(engine, said, instant=at)


def runs_by_task(board):
    return {row["task_id"]: row["n"] for row in board.rows("SELECT task_id, count(*) AS n FROM runs GROUP BY task_id")}


@pytest.fixture
def owed(board, cut_off):
    """Return a function that commits the occurrence of task `T<n>` and leaves its wake owed: assigned, or created."""

    def occur(number):
        task = f"T{number}"
        if number % 2:
            cut_off(create, board.engine, f"m{number}", task, "ana")
        else:
            create(board.engine, f"c{number}", task, "")
            cut_off(assign_task, board.engine, f"m{number}", task, "ana", "", T0)
        return task

    return occur


def create(engine, mutation_id, task, agent):
    return create_task(engine, mutation_id, "acme", "x", task_id=task, step_id="start", assignee_id=agent, instant=T0)


def test_both_producers_at_once_two_hundred_times(board, owed, make_test_engine):
    """PRO-3.2, PRO-3.7, ADM-6.3: the owed wake and two events of it, from three connections at one moment."""
    engines = [make_test_engine(pool_size=1) for _ in range(3)]
    start = Barrier(3)

    def together(work, *args):
        start.wait(10)
        return work(*args)

    with in_background() as submit:
        for number in range(TIMES):
            task = owed(number)
            producer = (Producer.TASK_UPDATED, Producer.TASK_CREATED)[number % 2]
            calls = [
                submit(together, settle, engines[0], f"m{number}"),
                submit(together, hear, engines[1], f"e{number}", task, "ana", 1, producer),
                submit(together, hear, engines[2], f"f{number}", task, "ana", 1, Producer.TASK_UPDATED),
            ]
            results = [call.result(30) for call in calls]
            keys = {wake["key"] for wake in board.rows("SELECT key FROM wakes WHERE task_id = :task", task=task)}
            assert keys == {f"task_assigned:{task}:ana:1"}
            assert {each["outcome"] for each in results[1:]} <= {"queued", "deduped", "coalesced"}
    assert runs_by_task(board) == {f"T{number}": 1 for number in range(TIMES)}
    assert board.rows("SELECT count(*) AS n FROM wakes WHERE state = 'owed'") == [{"n": 0}]


@pytest.mark.parametrize("gap", [{"seconds": 1}, {"hours": 1}, {"hours": 25}])
@pytest.mark.parametrize("event_first", [True, False])
def test_both_producers_in_either_order(board, owed, event_first, gap):
    """PRO-3.2, ADM-3, ADM-6.1: within the windows and beyond them the second finds the first's run by the one key."""
    task = owed(2)
    first, second = after(minutes=1), after(minutes=1) + (after(**gap) - T0)
    if event_first:
        queued = hear(board.engine, "e", task, "ana", 1, at=first)["run_id"]
        (found,) = settle(board.engine, "m2", second)["wakes"]
    else:
        (queued,) = settle(board.engine, "m2", first)["runs"]
        found = hear(board.engine, "e", task, "ana", 1, at=second)
    assert (found["outcome"], found["run_id"]) == ("deduped", queued)
    assert runs_by_task(board) == {task: 1}


def test_two_assignments_and_their_events_mixed(board, cut_off):
    """PRO-1.2, PRO-2.4, PRO-2.5: the event of the first, heard after the second committed, still names the first."""
    create(board.engine, "c", "T1", "")
    for number, agent in enumerate(("ana", "bob", "ana"), start=1):
        cut_off(assign_task, board.engine, f"m{number}", "T1", agent, "", T0)
    for minute, (number, agent) in enumerate(((3, "ana"), (1, "ana"), (2, "bob"))):
        heard = hear(board.engine, f"e{number}", "T1", agent, number, at=after(minutes=minute))
        assert (heard["outcome"], heard["key"]) == ("queued", f"task_assigned:T1:{agent}:{number}")
    for number in (2, 3, 1):
        (found,) = settle(board.engine, f"m{number}", after(hours=1))["wakes"]
        assert found["outcome"] == "deduped"
    assert runs_by_task(board) == {"T1": 3}
