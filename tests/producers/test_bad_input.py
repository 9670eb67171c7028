"""What cannot be accepted: a typed error that names the field, and nothing written."""

from __future__ import annotations

import pytest

from db.models import Base
from office_tasks import admin
from office_tasks.errors import Forbidden, InvalidInput, NotFound
from office_tasks.producers import bare, comments, statuses
from office_tasks.producers.producer import Producer

NO_IDENTIFIERS = {
    "blank": " ", "a number": 7, "a list": ["T1"], "an object": {"id": "T1"}, "true": True, "bytes": b"T1",
    "with NUL": "T\0", "a lone surrogate": "T\ud800", "too long": "é" * 128,
}  # fmt: skip
# By field: a call that has it wrong, everything else being right.
FIELDS = {
    "assign_task.task_id": lambda acts, value: acts.assign(value),
    "assign_task.assignee_id": lambda acts, value: acts.assign("T1", value),
    "assign_task.caller_agent_id": lambda acts, value: acts.assign(by=value),
    "create_task.workspace_id": lambda acts, value: acts._mutate(_create, value, "title", at=None),
    "create_task.task_id": lambda acts, value: acts.create(value),
    "create_task.assignee_id": lambda acts, value: acts.create("T2", value),
    "create_task.caller_agent_id": lambda acts, value: acts.create("T2", by=value),
    "create_task.step_id": lambda acts, value: acts.create("T2", step_id=value),
    "create_task.workflow_id": lambda acts, value: acts.create("T2", workflow_id=value),
    "create_task.project_id": lambda acts, value: acts.create("T2", project_id=value),
    "create_task.parent_id": lambda acts, value: acts.create("T2", parent_id=value),
    "onboard_task.agent_profile_id": lambda acts, value: acts.onboard(value),
    "enter_step.task_id": lambda acts, value: acts.enter(value),
    "enter_step.step_id": lambda acts, value: acts.enter(step=value),
    "set_task_status.task_id": lambda acts, value: acts.status("done", value),
    "set_task_status.caller_agent_id": lambda acts, value: acts.status("done", by=value),
    "set_task_status.comment_id": lambda acts, value: acts.status("done", comment=value),
    "set_task_status.status": lambda acts, value: acts.status(value),
    "add_comment.task_id": lambda acts, value: acts.comment(task=value),
    "add_comment.comment_id": lambda acts, value: acts.comment(value),
    "add_comment.author_id": lambda acts, value: acts._mutate(
        comments.add_comment, "T1", "c1", "hello", "agent", value, at=None
    ),
    "add_comment.author_type": lambda acts, value: acts._mutate(
        comments.add_comment, "T1", "c1", "hello", value, "bob", at=None
    ),
    "task_created.task_id": lambda acts, value: acts.hear(Producer.TASK_CREATED, value, "ana", 1),
    "task_updated.assignee_id": lambda acts, value: acts.hear(Producer.TASK_UPDATED, "T1", value, 1),
    "queue_run.agent_profile_id": lambda acts, value: acts.ask(bare.queue_run("q1", value, "r")),
    "queue_run.reason": lambda acts, value: acts.ask(bare.queue_run("q1", "ana", value)),
    "spawn_run.calling_run_id": lambda acts, value: acts.ask(bare.spawn_run("s1", value, "ana", "r")),
}
# A body is any text.
TEXTS = {
    "add_comment.body": lambda acts, value: acts.comment(body=value),
    "set_task_status.comment_body": lambda acts, value: acts.status("done", body=value),
}


def _create(*args, **more):
    from office_tasks.producers.creation import create_task

    return create_task(*args, **more)


def everything(acts):
    return {
        table.name: sorted(map(str, acts.board.rows(f"SELECT * FROM {table.name}")))
        for table in Base.metadata.sorted_tables
    }


@pytest.fixture
def refused(acts):
    """Assert that a call raises that error, and that every row of every table is as it was."""
    acts.create(assignee="ana")
    admin.create_workspace(acts.engine, "other")
    admin.create_agent(acts.engine, "other", "olga")
    admin.create_agent(acts.engine, "acme", "guest", role="guest")
    before = everything(acts)

    def check(error, call, match=None):
        with pytest.raises(error, match=match) as caught:
            call(acts)
        assert type(caught.value) is error
        assert everything(acts) == before

    return check


@pytest.mark.parametrize("field", FIELDS)
def test_an_identifier_that_is_none(refused, field):
    """PRO-3.2, ADM-8.2: refused by a sentence that names the field, before anything is read."""
    for value in NO_IDENTIFIERS.values():
        refused(InvalidInput, lambda acts, value=value: FIELDS[field](acts, value), match=field.partition(".")[2])


@pytest.mark.parametrize("field", TEXTS)
@pytest.mark.parametrize("value", [7, None, ["hello"], "h\0", "h\ud800"], ids=repr)
def test_a_text_that_is_none(refused, field, value):
    """ADM-8.2, PRO-5.2: refused too."""
    refused(InvalidInput, lambda acts: TEXTS[field](acts, value), match=field.partition(".")[2])


@pytest.mark.parametrize(
    "field", ["assign_task.task_id", "add_comment.comment_id", "add_comment.author_id", "enter_step.step_id"]
)
def test_what_must_be_named(refused, field):
    """ADM-8.2, PRO-5.2: an empty one names nobody."""
    refused(InvalidInput, lambda acts: FIELDS[field](acts, ""), match=field.partition(".")[2])


@pytest.mark.parametrize("status", ["", "Done", "DONE", "closed", "done ", None, 0], ids=repr)
def test_an_unknown_status(refused, status):
    """PRO-5.1: the six are named in the sentence."""
    refused(
        InvalidInput, lambda acts: acts.status(status), match="todo, in_progress, in_review, blocked, done, cancelled"
    )


@pytest.mark.parametrize("role", ["", "User", "system", "assistant", None, 1, ["agent"]], ids=repr)
def test_an_unknown_kind_of_author(refused, role):
    """PRO-5.2: a comment is by a user or by an agent."""
    refused(InvalidInput, lambda acts: FIELDS["add_comment.author_type"](acts, role), match="author_type")


UNKNOWN = {
    "a task to assign": (NotFound, lambda acts: acts.assign("nowhere")),
    "a task to unassign": (NotFound, lambda acts: acts.assign("nowhere", "")),
    "a task to move": (NotFound, lambda acts: acts.enter("nowhere", transition="t1")),
    "a task to close": (NotFound, lambda acts: acts.status("done", "nowhere")),
    "a task to reopen with a comment": (NotFound, lambda acts: acts.status("todo", "nowhere", comment="c1", body="b")),
    "a task to comment": (NotFound, lambda acts: acts.comment(task="nowhere", body="@ana")),
    "an agent to assign": (NotFound, lambda acts: acts.assign(agent="ghost")),
    "an agent to create for": (NotFound, lambda acts: acts.create("T2", "ghost")),
    "an agent to bring on board": (NotFound, lambda acts: acts.onboard("ghost")),
    "an agent that assigns": (Forbidden, lambda acts: acts.assign(agent="bob", by="ghost")),
    "an agent that creates for another": (Forbidden, lambda acts: acts.create("T2", "ana", by="ghost")),
    "an agent that creates": (NotFound, lambda acts: acts.create("T2", by="ghost")),
    "an agent that comments": (NotFound, lambda acts: acts.comment(by="ghost")),
    "an agent that closes": (NotFound, lambda acts: acts.status("done", by="ghost")),
    "another workspace's that assigns": (Forbidden, lambda acts: acts.assign(agent="bob", by="olga")),
    "another workspace's that creates": (Forbidden, lambda acts: acts.create("T2", "ana", by="olga")),
    "another workspace's that comments": (Forbidden, lambda acts: acts.comment(by="olga")),
    "another workspace's that closes": (Forbidden, lambda acts: acts.status("done", by="olga")),
    "an agent that may not": (Forbidden, lambda acts: acts.assign(agent="bob", by="guest")),
    "a step": (NotFound, lambda acts: acts.enter(step="nowhere", transition="t1")),
    "a step to create on": (NotFound, lambda acts: acts.create("T2", step_id="nowhere")),
    "a project": (NotFound, lambda acts: acts.create("T2", project_id="nowhere")),
    "a parent": (NotFound, lambda acts: acts.create("T2", parent_id="nowhere")),
    "a workspace": (NotFound, lambda acts: FIELDS["create_task.workspace_id"](acts, "nowhere")),
    "another workspace's to assign": (InvalidInput, lambda acts: acts.assign(agent="olga")),
    "another workspace's to create for": (InvalidInput, lambda acts: acts.create("T2", "olga")),
    "another workspace's to bring on board": (InvalidInput, lambda acts: acts.onboard("olga")),
    "another workspace's in an event": (InvalidInput, lambda acts: acts.hear(assignee="olga", generation=1)),
}


@pytest.mark.parametrize(("error", "call"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_unknown(refused, error, call):
    """PRO-3.5, PRO-5, ADM-7.3: not found, forbidden, or of another workspace: nothing written, nothing cancelled."""
    refused(error, call)


@pytest.mark.parametrize(
    "generation", [-1, -(2**40), "1", "", "one", 1.0, 1.5, float("nan"), True, [], {}, 2**63], ids=repr
)
@pytest.mark.parametrize("producer", [Producer.TASK_CREATED, Producer.TASK_UPDATED])
def test_a_generation_that_is_none(refused, producer, generation):
    """PRO-2.2, PRO-3.2: negative, a string, a float: refused, for a task that is known and for one that is not."""
    for task in ("T1", "nowhere", ""):
        refused(InvalidInput, lambda acts, task=task: acts.hear(producer, task, "ana", generation), match="generation")


def test_a_refused_message_may_come_right(acts):
    """PRO-6.1: what was refused committed nothing, so the same message with what was missing does."""
    with pytest.raises(NotFound):
        statuses.set_task_status(acts.engine, "m-late", "T9", "done")
    acts.create("T9")
    assert statuses.set_task_status(acts.engine, "m-late", "T9", "done")["was"] == "todo"
