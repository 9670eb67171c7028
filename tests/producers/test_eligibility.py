"""Whether a task's assignee may be woken: one rule, asked by every producer of `task_assigned`."""

from __future__ import annotations

import pytest

from office_tasks import admin
from office_tasks.producers.producer import Producer
from tests.admission.telling import listening


def assign(acts):
    return acts.assign()


def create(acts):
    """Another task, at the same place."""
    places = acts.board.rows("SELECT step_id, workflow_id, project_id FROM tasks WHERE id = 'T1'")[0]
    return acts.create("T2", "ana", **{name: value or "" for name, value in places.items()})


def event(producer):
    def hear(acts):
        return acts.hear(producer, assignee="ana", generation=1)

    return hear


def enter(acts):
    acts.seat("runner", "ana", step=None)
    step = acts.board.rows("SELECT step_id FROM tasks WHERE id = 'T1'")[0]["step_id"]
    return acts.enter(step=step, transition="t1")


PRODUCERS = {
    "assign_task": assign,
    "create_task": create,
    "task_created": event(Producer.TASK_CREATED),
    "task_updated": event(Producer.TASK_UPDATED),
    "enter_step": enter,
}
STEPLESS = {name: producer for name, producer in PRODUCERS.items() if name != "enter_step"}
every = pytest.mark.parametrize("produce", PRODUCERS.values(), ids=PRODUCERS)


@pytest.fixture
def elsewhere(acts):
    """Steps of a workflow that is not the office's, and a project."""
    admin.create_step(acts.engine, "acme", "aside", workflow_id="elsewhere", auto_start=True)
    admin.create_step(acts.engine, "acme", "aside-wait", workflow_id="elsewhere", auto_start=False)
    admin.create_project(acts.engine, "acme", "p1")
    return acts


def woken_or_withheld(acts, produce, **places):
    """Produce on a task that stands there; return how many were woken, and what was said about withholding."""
    acts.create(**places)
    with listening() as told:
        wakes = produce(acts).wakes
    return len(wakes), [(entry["why"], entry["log_level"]) for entry in told.events("wake_withheld")]


@every
@pytest.mark.parametrize("place", [{"step_id": "wait"}, {"step_id": "aside-wait", "project_id": "p1"}], ids=str)
def test_a_step_that_does_not_auto_start_wakes_nobody(elsewhere, produce, place):
    """PRO-3.3: said at info, whoever produces, in a project too; nothing is written that could be woken later."""
    assert woken_or_withheld(elsewhere, produce, **place) == (0, [("step_does_not_auto_start", "info")])
    assert elsewhere.board.count("wakes") == 0


@every
def test_a_step_that_auto_starts_wakes(elsewhere, produce):
    """PRO-3.3, PRO-3.4: on the office workflow."""
    assert woken_or_withheld(elsewhere, produce, step_id="start") == (1, [])


@every
def test_a_project_makes_an_office_task(elsewhere, produce):
    """PRO-3.4: whatever its workflow."""
    assert woken_or_withheld(elsewhere, produce, step_id="aside", project_id="p1") == (1, [])


@every
def test_another_workflow_outside_a_project_is_no_office_task(elsewhere, produce):
    """PRO-3.4: nobody is woken, and it is said."""
    assert woken_or_withheld(elsewhere, produce, step_id="aside") == (0, [("not_an_office_task", "info")])


@pytest.mark.parametrize("produce", STEPLESS.values(), ids=STEPLESS)
@pytest.mark.parametrize(
    ("place", "woken"),
    [({"project_id": "p1"}, 1), ({"workflow_id": "flow"}, 1), ({"workflow_id": "elsewhere"}, 0), ({}, 0)],
    ids=str,
)
def test_a_task_without_a_step_is_eligible_when_it_is_an_office_task(elsewhere, produce, place, woken):
    """PRO-3.3, PRO-3.4: in a project or on the office workflow."""
    assert woken_or_withheld(elsewhere, produce, step_id="", **place)[0] == woken


@pytest.mark.parametrize("produce", [assign, *(event(one) for one in (Producer.TASK_CREATED, Producer.TASK_UPDATED))])
def test_a_step_that_cannot_be_read_is_eligible(acts, produce):
    """PRO-3.3: with a warning, whoever produces."""
    acts.create()
    acts.board.execute("DELETE FROM steps WHERE id = 'start'")
    with listening() as told:
        assert len(produce(acts).wakes) == 1
    assert [entry["log_level"] for entry in told.events("step_unreadable")] == ["warning"]


def test_a_workspace_without_an_office_workflow_has_no_office_tasks_on_it(acts):
    """PRO-3.4: no workflow is not the same as no workflow: bringing an agent on board there wakes nobody."""
    admin.create_workspace(acts.engine, "plain")
    admin.create_agent(acts.engine, "plain", "pia")
    from office_tasks.producers.creation import onboard_task

    result = onboard_task(acts.engine, "m", "plain", "pia", "welcome")
    assert (result["wakes"], result["generation"]) == ([], 1)


@pytest.mark.parametrize("step", ["wait", "start"])
def test_the_displaced_runner_is_interrupted_all_the_same(acts, step):
    """PRO-3.3: where nobody is woken, the interrupt of a displaced runner still happens."""
    acts.create()
    first = acts.assign()
    acts.start(first)
    acts.enter(step=step, transition="t1")
    did = acts.assign(agent="bob")
    assert did.result["interrupted"] == first.result["runs"]
    assert len(did.wakes) == (0 if step == "wait" else 1)


@pytest.mark.parametrize(
    ("status", "reason"), [("in_review", "task_review_requested"), ("todo", "task_unblocked")], ids=str
)
def test_no_reaction_wakes_for_what_is_no_office_task(elsewhere, status, reason):
    """PRO-3.4: reviews, unblockings, comments, mentions, blockers, children: none of them on another board."""
    acts = elsewhere
    acts.create(step_id="aside", assignee="ana")
    acts.create("T2", "ana", step_id="aside", parent_id="T1")
    acts.block("T1", "T2")
    acts.seat("reviewer", "bob", step="aside")
    acts.status("blocked")
    assert acts.status(status).wakes == []
    assert acts.comment(body="@bob").wakes == []
    assert acts.status("done", "T2").wakes == []
    acts.status("done")
    assert acts.status("todo").wakes == []
    acts.status("done")
    assert acts.status("todo", comment="c2", body="again").wakes == []
    assert acts.board.count("runs") == 0, reason
