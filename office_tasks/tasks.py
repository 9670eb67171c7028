"""The Celery tasks: parse, call, return. Their names are wire format, never renamed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from office_tasks import telemetry, termination
from office_tasks.admission import Wake, poison, recall
from office_tasks.base import ExecutionTask, OfficeTask
from office_tasks.celery_app import app
from office_tasks.errors import InvalidInput, Poisoned
from office_tasks.execution.execute import execute_next
from office_tasks.producers import (
    after,
    assignments,
    bare,
    comments,
    creation,
    deletion,
    inbound,
    participants,
    pauses,
    statuses,
    steps,
)
from office_tasks.producers.producer import Producer
from office_tasks.reasons import TASK_ASSIGNED

Result = dict[str, Any]
Json = Any


def _enqueue(task: OfficeTask, reason: str, build: Callable[[], Wake | str]) -> Result:
    """Admit the bare wake that `build` returns, unless it returns why there is none.

    Input that makes no wake is counted as the refusal that it is (ADM-9).
    """
    try:
        wake = build()
    except InvalidInput:
        telemetry.count_refusal(reason if isinstance(reason, str) else "", "invalid")
        raise
    if isinstance(wake, str):
        # What asks for no wake now may have asked for one when its message came first: that is the answer (ADM-10.3).
        before = recall(task.office.engine, task.message_id)
        return bare.answered(before) if before else bare.nobody_woken(reason, wake)
    if task.is_poisoned():
        return bare.answered(poison(task.office.engine, wake))
    return bare.enqueue(task.office.engine, wake, last_attempt=task.last_attempt)


def _unless_poisoned(task: OfficeTask) -> str:
    """Return the mutation's id, or give the mutation up when its message was delivered too often."""
    if task.is_poisoned():
        after.give_up(task.office.engine, task.request.id)
        raise Poisoned("the message was delivered too often, each time taking its worker with it")
    return task.message_id


@app.task(name="office.queue_run", bind=True)
def queue_run(
    self: OfficeTask, agent_profile_id: str, reason: str, payload: Json = None, idempotency_key: str | None = None
) -> Result:
    """Ask that an agent be started: the door for trusted code, its key stored as given."""
    build = partial(bare.queue_run, self.message_id, agent_profile_id, reason, payload, idempotency_key)
    return _enqueue(self, reason, build)


@app.task(name="office.spawn_run", bind=True)
def spawn_run(
    self: OfficeTask,
    calling_run_id: str | None,
    agent_profile_id: str,
    reason: str,
    payload: Json = None,
    key: str = "",
) -> Result:
    """Ask that an agent be started: the door for agents, the key prefixed with the calling run."""
    build = partial(bare.spawn_run, self.message_id, calling_run_id, agent_profile_id, reason, payload, key)
    return _enqueue(self, reason, build)


@app.task(name="office.task_created", bind=True)
def task_created(
    self: OfficeTask, task_id: str, assignee_id: str | None = None, assignment_generation: int | None = None
) -> Result:
    """Hear from another system that a task was created, and wake its assignee, or else its runner."""
    return _hear(self, Producer.TASK_CREATED, task_id, assignee_id, assignment_generation)


@app.task(name="office.task_updated", bind=True)
def task_updated(
    self: OfficeTask, task_id: str, assignee_id: str | None = None, assignment_generation: int | None = None
) -> Result:
    """Hear from another system that a task was updated, and wake the assignee that it names."""
    return _hear(self, Producer.TASK_UPDATED, task_id, assignee_id, assignment_generation)


def _hear(task: OfficeTask, producer: Producer, task_id: object, assignee_id: object, generation: object) -> Result:
    def build() -> Wake | str:
        said = inbound.event(producer, task_id, assignee_id, generation)
        return inbound.heard(task.office.engine, task.message_id, said)

    return _enqueue(task, TASK_ASSIGNED, build)


@app.task(name="office.assign_task", bind=True)
def assign_task(self: OfficeTask, task_id: str, assignee_id: str, caller_agent_id: str = "") -> Result:
    """Change who drives a task, then wake them; an empty assignee unassigns."""
    return assignments.assign_task(self.office.engine, _unless_poisoned(self), task_id, assignee_id, caller_agent_id)


@app.task(name="office.create_task", bind=True)
def create_task(
    self: OfficeTask,
    workspace_id: str,
    title: str,
    task_id: str = "",
    step_id: str = "",
    workflow_id: str = "",
    project_id: str = "",
    parent_id: str = "",
    priority: str = "",
    assignee_id: str = "",
    caller_agent_id: str = "",
) -> Result:
    """Create a task; with an assignee, wake them."""
    return creation.create_task(
        self.office.engine,
        _unless_poisoned(self),
        workspace_id,
        title,
        task_id=task_id,
        step_id=step_id,
        workflow_id=workflow_id,
        project_id=project_id,
        parent_id=parent_id,
        priority=priority,
        assignee_id=assignee_id,
        caller_agent_id=caller_agent_id,
    )


@app.task(name="office.onboard_task", bind=True)
def onboard_task(self: OfficeTask, workspace_id: str, agent_profile_id: str, title: str) -> Result:
    """Create a task for a new agent and wake it."""
    return creation.onboard_task(self.office.engine, _unless_poisoned(self), workspace_id, agent_profile_id, title)


@app.task(name="office.enter_step", bind=True)
def enter_step(self: OfficeTask, task_id: str, step_id: str, step_transition_id: str | int | None = None) -> Result:
    """Move a task to a step; one that auto-starts wakes its runner."""
    return steps.enter_step(self.office.engine, _unless_poisoned(self), task_id, step_id, step_transition_id)


@app.task(name="office.set_task_status", bind=True)
def set_task_status(
    self: OfficeTask,
    task_id: str,
    status: str,
    caller_agent_id: str = "",
    comment_id: str = "",
    comment_body: str = "",
) -> Result:
    """Set a task's status, perhaps with a comment, and wake whom that concerns."""
    return statuses.set_task_status(
        self.office.engine,
        _unless_poisoned(self),
        task_id,
        status,
        caller_agent_id,
        comment_id=comment_id,
        comment_body=comment_body,
    )


@app.task(name="office.add_comment", bind=True)
def add_comment(self: OfficeTask, task_id: str, comment_id: str, body: str, author_type: str, author_id: str) -> Result:
    """Add a comment, and wake the assignee and whomever it mentions."""
    return comments.add_comment(
        self.office.engine, _unless_poisoned(self), task_id, comment_id, body, author_type, author_id
    )


@app.task(name="office.add_participant", bind=True)
def add_participant(
    self: OfficeTask, task_id: str, agent_profile_id: str, role: str, caller_agent_id: str = ""
) -> Result:
    """Give an agent a seat on a task."""
    engine, mutation_id = self.office.engine, _unless_poisoned(self)
    return participants.add_participant(engine, mutation_id, task_id, agent_profile_id, role, caller_agent_id)


@app.task(name="office.remove_participant", bind=True)
def remove_participant(
    self: OfficeTask, task_id: str, agent_profile_id: str, role: str, caller_agent_id: str = ""
) -> Result:
    """Take a seat away, then end the agent's session unless it holds another capacity."""
    engine, mutation_id = self.office.engine, _unless_poisoned(self)
    return participants.remove_participant(engine, mutation_id, task_id, agent_profile_id, role, caller_agent_id)


@app.task(name="office.claim_seat", bind=True)
def claim_seat(
    self: OfficeTask,
    task_id: str,
    role: str,
    displaced_agent_id: str,
    claiming_agent_id: str,
    caller_agent_id: str = "",
) -> Result:
    """Take over another agent's seat, then end that one's session unless it holds another capacity."""
    return participants.claim_seat(
        self.office.engine,
        _unless_poisoned(self),
        task_id,
        role,
        displaced_agent_id,
        claiming_agent_id,
        caller_agent_id,
    )


@app.task(name="office.terminate_session", bind=True)
def terminate_session(self: OfficeTask, task_id: str, agent_profile_id: str, reason: str) -> Result:
    """Take the guarded step by itself: ask whether the agent still holds a capacity, and end its session if not."""
    guard = termination.guard(task_id, agent_profile_id, reason)
    return termination.end_unless_retained(self.office.engine, guard)


@app.task(name="office.delete_agent", bind=True)
def delete_agent(self: OfficeTask, agent_profile_id: str) -> Result:
    """Delete an agent, and end every session of its."""
    return deletion.delete_agent(self.office.engine, _unless_poisoned(self), agent_profile_id)


@app.task(name="office.settle_mutation", bind=True)
def settle_mutation(self: OfficeTask, mutation_id: str) -> Result:
    """Do what a committed mutation still owes."""
    return after.settle(self.office.engine, mutation_id)


@app.task(name="office.pause_workspace", bind=True)
def pause_workspace(self: OfficeTask, workspace_id: str, reason: str = "", interrupt: bool = False) -> Result:
    """Pull a workspace's kill switch; `interrupt` asks what its agents execute to stop."""
    return pauses.pause_workspace(self.office.engine, _unless_poisoned(self), workspace_id, reason, interrupt=interrupt)


@app.task(name="office.resume_workspace", bind=True)
def resume_workspace(self: OfficeTask, workspace_id: str) -> Result:
    """Let a workspace work again."""
    return pauses.resume_workspace(self.office.engine, _unless_poisoned(self), workspace_id)


@app.task(name="office.execute_run", base=ExecutionTask, bind=True)
def execute_run(self: OfficeTask) -> Result:
    """Execute the next run that may start."""
    settings = self.office.settings
    over = execute_next(self.office.engine, settings.run_handler, settings.run_time_limit)
    if over is None:
        return {"run_id": None}
    # Where one could start, another may: the same agent's next, if nothing else.
    self.app.executions.send()
    return over.told()
