"""A mutation's message that comes again: it never mutates again."""

from __future__ import annotations

import pytest

from office_tasks import admin
from office_tasks.errors import NotFound
from office_tasks.producers.after import settle
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.creation import create_task
from office_tasks.producers.pauses import pause_workspace, resume_workspace
from tests.admission.telling import listening
from tests.support import T0, after


def everything(board):
    tables = ("tasks", "seats", "runs", "wakes", "mutations", "events", "pauses")
    return {table: sorted(map(str, board.rows(f"SELECT * FROM {table}"))) for table in tables}


def created(board, at=T0):
    return create_task(
        board.engine, "m0", "acme", "title", task_id="T1", step_id="start", assignee_id="ana", instant=at
    )


def assigned(board, at=T0):
    return assign_task(board.engine, "m1", "T1", "bob", "ana", at)


def paused(board, at=T0):
    return pause_workspace(board.engine, "m2", "acme", "lunch", at)


def resumed(board, at=T0):
    return resume_workspace(board.engine, "m3", "acme", at)


@pytest.mark.parametrize("mutate", [created, assigned, paused, resumed])
def test_a_redelivered_mutation_returns_its_stored_result(acme, mutate):
    """PRO-6.1, ADM-6.4: the same id, any time later: the stored result, no row touched, nothing counted."""
    if mutate is assigned:
        created(acme)
    first = mutate(acme)
    before = everything(acme)
    with listening() as told:
        assert mutate(acme, after(days=30)) == first
    assert everything(acme) == before
    assert (told.moved, told.logged) == ({}, [])


def test_a_redelivery_outlives_the_permission_it_needed(acme):
    """PRO-6.1: what has since become forbidden or gone says nothing against a mutation that did commit."""
    created(acme)
    first = assigned(acme)
    admin.set_agent_status(acme.engine, "bob", "stopped")
    acme.execute("UPDATE agents SET permissions = '{}' WHERE id = 'ana'")
    acme.execute("UPDATE agents SET workspace_id = 'elsewhere' WHERE id = 'bob'")
    assert assigned(acme, after(minutes=1)) == first


def test_a_redelivery_of_an_earlier_assignment_does_not_undo_a_later_one(acme):
    """PRO-6.1, PRO-1.2: the later assignee stays, and the generation too."""
    created(acme)
    first = assigned(acme)
    assign_task(acme.engine, "later", "T1", "ana", "", after(minutes=1))
    assert assigned(acme, after(minutes=2)) == first
    assert acme.rows("SELECT agent_profile_id FROM seats") == [{"agent_profile_id": "ana"}]
    assert acme.rows("SELECT assignment_generation AS n FROM tasks") == [{"n": 3}]


def test_an_unsettled_mutation_is_settled_from_what_it_stored(acme):
    """PRO-6.1: killed after its commit, the redelivery runs the after-commit part from the stored facts."""
    created(acme)
    acme.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
    assigned(acme)
    acme.execute("UPDATE pauses SET resumed_at = now()")
    acme.execute("UPDATE mutations SET settled_at = NULL, result = NULL WHERE id = 'm1'")
    result = assigned(acme, after(minutes=1))
    assert [wake["outcome"] for wake in result["wakes"]] == ["queued"]
    assert (result["generation"], acme.count("runs")) == (2, 2)
    assert settle(acme.engine, "m1") == result
    assert acme.rows("SELECT settled_at IS NOT NULL AS done FROM mutations WHERE id = 'm1'") == [{"done": True}]


def test_settling_what_never_committed_is_an_error(acme):
    """PRO-6.1: there is nothing to settle."""
    with pytest.raises(NotFound):
        settle(acme.engine, "nothing")


def test_pausing_and_resuming_change_something_once(acme):
    """PRO-6.1: idempotent: a second pause, and a second resume, say that they changed nothing."""
    said = [pause_workspace(acme.engine, f"p{n}", "acme", "", after(minutes=n))["changed"] for n in (1, 2)] + [
        resume_workspace(acme.engine, f"r{n}", "acme", after(minutes=n))["changed"] for n in (3, 4)
    ]
    assert said == [True, False, True, False]
    assert acme.rows("SELECT paused_at, resumed_at FROM pauses") == [
        {"paused_at": after(minutes=1), "resumed_at": after(minutes=3)}
    ]


def test_a_pause_redelivered_after_the_resume_does_not_pause_again(acme):
    """PRO-6.1: the message of the pause is done with, whenever it comes again."""
    paused(acme)
    assert acme.ask().refusal == "workspace_paused"
    resumed(acme, after(minutes=1))
    assert paused(acme, after(minutes=2))["changed"] is True
    assert acme.ask(after(minutes=3)).outcome == "queued"


def test_a_resume_redelivered_after_the_next_pause_does_not_resume(acme):
    """PRO-6.1: nor does an old resume end a new pause."""
    paused(acme)
    resumed(acme, after(minutes=1))
    pause_workspace(acme.engine, "again", "acme", "", after(minutes=2))
    resumed(acme, after(minutes=3))
    assert acme.ask(after(minutes=4)).refusal == "workspace_paused"


def test_a_workspace_that_does_not_exist_cannot_be_paused(acme):
    """ADM-7.3: not found, nothing written."""
    for switch in (pause_workspace, resume_workspace):
        with pytest.raises(NotFound):
            switch(acme.engine, "m", "nowhere")
    assert acme.count("mutations") == acme.count("pauses") == 0


def test_a_pause_of_one_workspace_is_its_own(acme):
    """ADM-2.6: pausing another workspace stops nobody here."""
    admin.create_workspace(acme.engine, "other")
    pause_workspace(acme.engine, "m", "other")
    assert acme.ask().outcome == "queued"
