"""The Celery tasks: parse, call, return. Their names are wire format, never renamed.

An id is text of 1 to 255 bytes, and empty where one is optional (ADM-8.2). Each returns a flat dict. Of all that change
something, a redelivered message changes nothing again and returns what it came to (PRO-6.1). Any may raise `Poisoned`,
when its message was delivered too often (ADM-10.5), and `DatabaseError`, when Postgres failed as no retry mends.
"""

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
    """Ask that an agent be started: the door for trusted code, its key stored as given (ADM-7.2, PRO-1.3).

    Raises:
        InvalidInput: no id or reason, a payload that is no JSON or over 256 KiB, or a key too long (ADM-8).
        Refused: gate 1 or 2 declined it (ADM-7.3).
    """
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
    """Ask that an agent be started: the door for agents, the key prefixed with the calling run (PRO-1.6).

    Raises:
        InvalidInput: as of `queue_run`.
        Refused: as of `queue_run`.
    """
    build = partial(bare.spawn_run, self.message_id, calling_run_id, agent_profile_id, reason, payload, key)
    return _enqueue(self, reason, build)


@app.task(name="office.task_created", bind=True)
def task_created(
    self: OfficeTask, task_id: str, assignee_id: str | None = None, assignment_generation: int | None = None
) -> Result:
    """Hear from another system that a task was created, and wake its assignee, or else its runner (PRO-3.2).

    A generation that is absent or null was not supplied; 0 names no assignment, and wakes nobody (PRO-2.2).

    Raises:
        InvalidInput: it is malformed, or the assignee is an agent of another workspace.
        Refused: gate 1 or 2 declined the wake.
    """
    return _hear(self, Producer.TASK_CREATED, task_id, assignee_id, assignment_generation)


@app.task(name="office.task_updated", bind=True)
def task_updated(
    self: OfficeTask, task_id: str, assignee_id: str | None = None, assignment_generation: int | None = None
) -> Result:
    """Hear from another system that a task was updated, and wake the assignee that it names (PRO-3.2).

    Raises:
        InvalidInput: as of `task_created`.
        Refused: as of `task_created`.
    """
    return _hear(self, Producer.TASK_UPDATED, task_id, assignee_id, assignment_generation)


def _hear(task: OfficeTask, producer: Producer, task_id: object, assignee_id: object, generation: object) -> Result:
    def build() -> Wake | str:
        said = inbound.event(producer, task_id, assignee_id, generation)
        return inbound.heard(task.office.engine, task.message_id, said)

    return _enqueue(task, TASK_ASSIGNED, build)


@app.task(name="office.assign_task", bind=True)
def assign_task(self: OfficeTask, task_id: str, assignee_id: str, caller_agent_id: str = "") -> Result:
    """Change who drives a task, then wake them; an empty assignee unassigns (PRO-3.5). Guarded path 3 (SES-1.1).

    Raises:
        InvalidInput: an identifier that is none, or an assignee of another workspace.
        Forbidden: the calling agent may not assign (SES-5).
        NotFound: no such task, or no such agent.
    """
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
    """Create a task; with an assignee, wake them (PRO-3.7). An empty `task_id` is for a new one.

    Raises:
        InvalidInput: an identifier that is none, an id that is taken, or something of another workspace.
        Forbidden: the calling agent may not assign, and an assignee is given (SES-5).
        NotFound: no such workspace, project, step, parent or agent.
    """
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
    """Create a task for a new agent and wake it, with and without a key (PRO-3.7).

    Raises:
        InvalidInput: an identifier that is none, or an agent of another workspace.
        NotFound: no such workspace or agent.
    """
    return creation.onboard_task(self.office.engine, _unless_poisoned(self), workspace_id, agent_profile_id, title)


@app.task(name="office.enter_step", bind=True)
def enter_step(self: OfficeTask, task_id: str, step_id: str, step_transition_id: str | int | None = None) -> Result:
    """Move a task to a step; one that auto-starts wakes its runner (PRO-3).

    A transition that is absent, empty or zero is none: its wake has no key (PRO-4).

    Raises:
        InvalidInput: an identifier that is none, or the transition of another move.
        NotFound: no such task, or no such step in its workspace.
    """
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
    """Set a task's status, perhaps with a comment, and wake whom that concerns (PRO-5.1).

    Raises:
        InvalidInput: no such status, an identifier that is none, or a comment id that is taken by another task.
        Forbidden: the calling agent is of another workspace.
        NotFound: no such task, or no such calling agent.
    """
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
    """Add a comment, and wake the assignee and whomever it mentions, but never its author (PRO-5.2).

    Raises:
        InvalidInput: an identifier that is none, an unknown kind of author, or the id of another comment.
        Forbidden: the author agent is of another workspace.
        NotFound: no such task, or no such author agent.
    """
    return comments.add_comment(
        self.office.engine, _unless_poisoned(self), task_id, comment_id, body, author_type, author_id
    )


@app.task(name="office.add_participant", bind=True)
def add_participant(
    self: OfficeTask, task_id: str, agent_profile_id: str, role: str, caller_agent_id: str = ""
) -> Result:
    """Give an agent a seat on a task, at the step where it stands (SES-2).

    Raises:
        InvalidInput: no such role, or the runner's, which is assigned; an agent of another workspace; no step.
        Forbidden: the calling agent may not approve, or is of another workspace (SES-5).
        NotFound: no such task or agent.
    """
    engine, mutation_id = self.office.engine, _unless_poisoned(self)
    return participants.add_participant(engine, mutation_id, task_id, agent_profile_id, role, caller_agent_id)


@app.task(name="office.remove_participant", bind=True)
def remove_participant(
    self: OfficeTask, task_id: str, agent_profile_id: str, role: str, caller_agent_id: str = ""
) -> Result:
    """Take a seat away, then end the agent's session unless it holds another capacity: guarded path 1 (SES-1.1).

    Raises:
        InvalidInput: no such role.
        Forbidden: the calling agent may not approve, or is of another workspace (SES-5).
        NotFound: no such task, or the agent has no such seat of its own there.
    """
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
    """Take over another agent's seat, then end that one's session unless it holds another capacity: guarded path 2.

    Raises:
        InvalidInput: no such role, or the runner's; the claimer already sits there, or is of another workspace.
        Forbidden: the calling agent may not approve, or is of another workspace (SES-5).
        NotFound: no such task or claiming agent, or the displaced has no such seat of its own there.
    """
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
    """Take the guarded step by itself: ask whether the agent still holds a capacity, and end its session if not.

    What the database says is in the result, never raised: `terminated`, `retained` or `error` (SES-1).

    Raises:
        InvalidInput: a reason of none of the three guarded paths, or an identifier that is none.
    """
    guard = termination.guard(task_id, agent_profile_id, reason)
    return termination.end_unless_retained(self.office.engine, guard)


@app.task(name="office.delete_agent", bind=True)
def delete_agent(self: OfficeTask, agent_profile_id: str) -> Result:
    """Delete an agent, and end every session of its, whatever it holds (SES-1.10).

    Raises:
        NotFound: no such agent.
    """
    return deletion.delete_agent(self.office.engine, _unless_poisoned(self), agent_profile_id)


@app.task(name="office.settle_mutation", bind=True)
def settle_mutation(self: OfficeTask, mutation_id: str) -> Result:
    """Do what a committed mutation still owes (PRO-6).

    Raises:
        NotFound: no such mutation committed.
    """
    return after.settle(self.office.engine, mutation_id)


@app.task(name="office.pause_workspace", bind=True)
def pause_workspace(self: OfficeTask, workspace_id: str, reason: str = "", interrupt: bool = False) -> Result:
    """Pull a workspace's kill switch; `interrupt` asks what its agents execute to stop (REC-2.10).

    Raises:
        InvalidInput: a bad identifier or reason, or an `interrupt` that is no boolean.
        NotFound: no such workspace.
    """
    return pauses.pause_workspace(self.office.engine, _unless_poisoned(self), workspace_id, reason, interrupt=interrupt)


@app.task(name="office.resume_workspace", bind=True)
def resume_workspace(self: OfficeTask, workspace_id: str) -> Result:
    """Let a workspace work again: what it owes passes the gates once, oldest first (PRO-6.4).

    Raises:
        NotFound: no such workspace.
    """
    return pauses.resume_workspace(self.office.engine, _unless_poisoned(self), workspace_id)


@app.task(name="office.execute_run", base=ExecutionTask, bind=True)
def execute_run(self: OfficeTask) -> Result:
    """Execute the next run that may start, for as long as it takes (REC-2). Its `run_id` is null when none may."""
    settings = self.office.settings
    over = execute_next(self.office.engine, settings.run_handler, settings.run_time_limit)
    if over is None:
        return {"run_id": None}
    # Where one could start, another may: the same agent's next, if nothing else.
    self.app.executions.send()
    return over.told()
