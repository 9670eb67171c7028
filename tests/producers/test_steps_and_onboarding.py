"""Moving to a step, and bringing an agent on board."""

from __future__ import annotations

import pytest

from office_tasks.errors import InvalidInput, NotFound
from tests.support import after


@pytest.fixture
def t1(acts):
    """Task T1, driven by ana, on a step that does not auto-start."""
    acts.create(step_id="wait", assignee="ana")
    return acts


def key(did):
    return did.wake("task_assigned")["key"]


@pytest.mark.parametrize(("transition", "segment"), [("tr:1", "tr%3A1"), (17, "17"), ("17", "17")])
def test_an_auto_start_has_the_key_of_its_transition(t1, transition, segment):
    """PRO-3, PRO-1.2: the row of the move; a whole number is as good as text."""
    assert key(t1.enter(transition=transition)) == f"task_assigned:T1:ana:start:{segment}"
    assert t1.board.rows("SELECT id, from_step_id, to_step_id FROM step_transitions") == [
        {"id": str(transition), "from_step_id": "wait", "to_step_id": "start"}
    ]


@pytest.mark.parametrize("transition", [None, "", 0, "0"])
def test_no_transition_is_no_key(t1, transition):
    """PRO-3, PRO-1.3: zero or missing: moved and woken, keyless, unresolved."""
    wake = t1.enter(transition=transition).wake("task_assigned")
    assert (wake["key"], wake["keyless_cause"], wake["keyless_detail"]) == (None, "unresolved", "zero_step_transition")
    assert t1.board.rows("SELECT step_id FROM tasks") == [{"step_id": "start"}]
    assert t1.board.count("step_transitions") == 1


def test_a_transition_that_comes_again_moves_and_wakes_once(t1):
    """PRO-1.1, PRO-3: by another message, long after: what it moved stays where it was moved since."""
    assert t1.enter(transition="tr1").result["moved"]
    assert t1.enter(transition="tr1").wakes == [], "where it stands already, nobody is asked again"
    t1.enter(step="wait", transition="tr2")
    again = t1.enter(transition="tr1", at=after(days=3))
    assert (again.result["moved"], again.wakes) == (False, [])
    assert t1.board.rows("SELECT step_id FROM tasks") == [{"step_id": "wait"}]
    assert t1.board.count("runs") == 1


def test_the_transition_of_another_move_is_refused(t1):
    """PRO-1.1: one id is one move: another task's, or one to another step, is no repetition; nothing moves."""
    t1.create("T2", "bob", step_id="wait")
    t1.enter(task="T1", transition="tr1")
    for task, step in (("T2", "start"), ("T1", "wait")):
        with pytest.raises(InvalidInput, match="tr1"):
            t1.enter(task=task, step=step, transition="tr1")
    assert t1.board.rows("SELECT step_id FROM tasks ORDER BY id") == [{"step_id": "start"}, {"step_id": "wait"}]
    assert t1.board.count("step_transitions") == 1


@pytest.mark.parametrize("transition", [1.5, True, ["a"], {"id": 1}, "  ", "a\0", "t" * 256], ids=repr)
def test_a_transition_that_is_none(t1, transition):
    """PRO-3: `InvalidInput`, nothing moved."""
    with pytest.raises(InvalidInput):
        t1.enter(transition=transition)
    assert t1.board.rows("SELECT step_id FROM tasks") == [{"step_id": "wait"}]


@pytest.mark.parametrize(("task", "step"), [("nowhere", "start"), ("T1", "nowhere"), ("T1", "theirs")])
def test_a_move_that_cannot_be(t1, task, step):
    """PRO-3: no such task, no such step, a step of another workspace."""
    from office_tasks import admin

    admin.create_workspace(t1.engine, "other")
    admin.create_step(t1.engine, "other", "theirs", workflow_id="flow", auto_start=True)
    with pytest.raises(NotFound):
        t1.enter(task=task, step=step, transition="tr1")
    assert t1.board.count("step_transitions") == 0
    assert t1.board.rows("SELECT step_id FROM tasks") == [{"step_id": "wait"}]


def test_who_drives_the_task_there_is_woken(acts):
    """PRO-3: the seat at that step, else the step's own agent, else the latest seat; nobody when there is none."""
    acts.board.execute("UPDATE steps SET primary_agent_id = 'bob' WHERE id = 'start'")
    acts.create(step_id="wait", assignee="ana")
    assert [wake["agent_profile_id"] for wake in acts.enter(transition="t1").wakes] == ["bob"]
    acts.assign(agent="ana")
    acts.enter(step="wait", transition="t2")
    assert [wake["agent_profile_id"] for wake in acts.enter(transition="t3").wakes] == ["ana"]
    acts.board.execute("UPDATE steps SET primary_agent_id = NULL")
    acts.create("T2", step_id="wait")
    assert acts.enter("T2", transition="t4").wakes == []


def test_bringing_an_agent_on_board_is_two_wakes_in_one_run(acts):
    """PRO-3.7: the creation's own, keyed, and a keyless one; ordinarily they coalesce."""
    did = acts.onboard()
    assert sorted(did.woken) == [("ana", "task_assigned", "coalesced"), ("ana", "task_assigned", "queued")]
    keyed, keyless = did.wake("task_assigned", keyless=False), did.wake("task_assigned", keyless=True)
    assert keyed["key"] == f"task_assigned:{did.result['task_id']}:ana:1"
    assert (keyless["keyless_cause"], keyless["keyless_detail"]) == ("unresolved", "onboarding_no_generation")
    assert keyed["run_id"] == keyless["run_id"]
    [task] = acts.board.rows("SELECT workflow_id, step_id FROM tasks")
    assert task == {"workflow_id": "flow", "step_id": None}


def test_apart_by_more_than_the_window_they_are_two(acts):
    """PRO-3.7: settled in two halves, an hour apart: two runs, and each is counted."""
    from office_tasks.producers.after import admit_owed, stored_wakes

    acts.board.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
    did = acts.onboard()
    acts.board.execute("DELETE FROM pauses")
    answers = [
        admit_owed(acts.engine, wake, after(hours=n))
        for n, wake in enumerate(stored_wakes(acts.engine, did.result["mutation_id"]), 1)
    ]
    assert [answer.outcome for answer in answers] == ["queued", "queued"]
    assert acts.board.count("runs") == 2


@pytest.mark.parametrize(("agent", "error"), [("ghost", NotFound), ("olga", InvalidInput), ("", InvalidInput)])
def test_whoever_cannot_be_brought_on_board(acts, agent, error):
    """PRO-3.7: nobody, nobody known, an agent of another workspace: no task is left behind."""
    from office_tasks import admin

    admin.create_workspace(acts.engine, "other")
    admin.create_agent(acts.engine, "other", "olga")
    with pytest.raises(error):
        acts.onboard(agent)
    assert acts.board.count("tasks") == acts.board.count("wakes") == acts.board.count("mutations") == 0
