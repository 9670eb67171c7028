"""The Celery tasks: parse, call, return. Their names are wire format, never renamed."""

from __future__ import annotations

from typing import Any

from office_tasks.admission import Wake, poison
from office_tasks.base import OfficeTask
from office_tasks.celery_app import app
from office_tasks.errors import Poisoned
from office_tasks.producers import assignments, bare, mutation, pauses
from office_tasks.reasons import TASK_ASSIGNED

Result = dict[str, Any]
Json = Any


def _enqueue(task: OfficeTask, wake: Wake) -> Result:
    if task.is_poisoned():
        return bare.answered(poison(task.office.engine, wake))
    return bare.enqueue(task.office.engine, wake, last_attempt=task.last_attempt)


def _unless_poisoned(task: OfficeTask) -> str:
    """Return the mutation's id, or give the mutation up when its message was delivered too often."""
    if task.is_poisoned():
        mutation.give_up(task.office.engine, task.request.id)
        raise Poisoned("the message was delivered too often, each time taking its worker with it")
    return task.message_id


@app.task(name="office.queue_run", bind=True)
def queue_run(
    self: OfficeTask, agent_profile_id: str, reason: str, payload: Json = None, idempotency_key: str | None = None
) -> Result:
    """Ask that an agent be started: the door for trusted code, its key stored as given."""
    return _enqueue(self, bare.queue_run(self.message_id, agent_profile_id, reason, payload, idempotency_key))


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
    return _enqueue(self, bare.spawn_run(self.message_id, calling_run_id, agent_profile_id, reason, payload, key))


@app.task(name="office.task_created", bind=True)
def task_created(
    self: OfficeTask, task_id: str, assignee_id: str | None = None, assignment_generation: int | None = None
) -> Result:
    """Hear from another system that a task was created, and wake its assignee."""
    asked = bare.task_created(self.office.engine, self.message_id, task_id, assignee_id, assignment_generation)
    return bare.nobody_woken(TASK_ASSIGNED, asked) if isinstance(asked, str) else _enqueue(self, asked)


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
    project_id: str = "",
    parent_id: str = "",
    priority: str = "",
    assignee_id: str = "",
    caller_agent_id: str = "",
) -> Result:
    """Create a task; with an assignee, wake them."""
    return assignments.create_task(
        self.office.engine,
        _unless_poisoned(self),
        workspace_id,
        title,
        task_id=task_id,
        step_id=step_id,
        project_id=project_id,
        parent_id=parent_id,
        priority=priority,
        assignee_id=assignee_id,
        caller_agent_id=caller_agent_id,
    )


@app.task(name="office.settle_mutation", bind=True)
def settle_mutation(self: OfficeTask, mutation_id: str) -> Result:
    """Do what a committed mutation still owes."""
    return mutation.settle(self.office.engine, mutation_id)


@app.task(name="office.pause_workspace", bind=True)
def pause_workspace(self: OfficeTask, workspace_id: str, reason: str = "") -> Result:
    """Pull a workspace's kill switch."""
    return pauses.pause_workspace(self.office.engine, _unless_poisoned(self), workspace_id, reason)


@app.task(name="office.resume_workspace", bind=True)
def resume_workspace(self: OfficeTask, workspace_id: str) -> Result:
    """Let a workspace work again."""
    return pauses.resume_workspace(self.office.engine, _unless_poisoned(self), workspace_id)
