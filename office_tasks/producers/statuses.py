"""Changing a task's status, and what that wakes (PRO-5.1)."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any

from sqlalchemy import Engine

from db import board, readiness
from db.states import TASK_STATUSES
from office_tasks import validation
from office_tasks.errors import InvalidInput
from office_tasks.ids import new_id
from office_tasks.producers import comments
from office_tasks.producers.after import Interrupt, Result
from office_tasks.producers.lock import locked
from office_tasks.producers.mutation import Actor, Change, Event, Transaction, caller, commit
from office_tasks.producers.producer import Producer
from office_tasks.producers.reactions import Changed, CommentAdded, StatusChange, react
from office_tasks.prose import shown


def set_task_status(
    engine: Engine,
    mutation_id: str,
    task_id: object,
    status: object,
    caller_agent_id: object = "",
    *,
    comment_id: object = "",
    comment_body: object = "",
    instant: dt.datetime | None = None,
) -> Result:
    """Set a task's status; a comment may come with it. Setting the one that it has changes nothing.

    Raises:
        InvalidInput: no such status, an identifier that is none, or a comment id that is taken by another task.
        NotFound: no such task, or no such calling agent.
        Forbidden: the calling agent is of another workspace.
    """
    work = partial(
        _set,
        task_id=validation.identifier("task_id", task_id),
        status=_status(status),
        actor=caller(validation.optional_identifier("caller_agent_id", caller_agent_id)),
        comment_id=validation.optional_identifier("comment_id", comment_id),
        body=validation.text("comment_body", comment_body, limit=validation.MAX_BODY_BYTES),
    )
    return commit(engine, mutation_id, work, instant)


def _status(value: object) -> str:
    if not isinstance(value, str) or value not in TASK_STATUSES:
        raise InvalidInput(f"status: must be one of {', '.join(TASK_STATUSES)}, not {shown(value)}")
    return value


def _set(tx: Transaction, *, task_id: str, status: str, actor: Actor, comment_id: str | None, body: str) -> Change:
    found = locked(tx, task_id, actor)
    step = StatusChange(found.status, status, reopens_with_comment=bool(comment_id or body))
    comment = _comment(tx, found, actor, comment_id, body)
    result: dict[str, Any] = {"mutation_id": tx.mutation_id, "task_id": task_id, "status": status, "was": found.status}
    if step.before == step.after and comment is None:
        return Change(kind="set_task_status", actor=actor, task_id=task_id, result=result)
    if status == "done":
        readiness.lock_waiting(tx.connection, task_id)
    board.set_status(tx.connection, task_id, status, tx.instant)
    changed = Changed(Producer.SET_TASK_STATUS, found, status=_moved(step), comment=comment)
    return Change(
        kind="set_task_status",
        actor=actor,
        task_id=task_id,
        result=result,
        wakes=react(tx.connection, changed, tx.mutation_id),
        events=_events(task_id, step, comment),
        interrupt=Interrupt(task_id, None) if _moved(step) and status == "cancelled" else None,
    )


def _moved(step: StatusChange) -> StatusChange | None:
    return step if step.before != step.after else None


def _events(task_id: str, step: StatusChange, comment: CommentAdded | None) -> list[Event]:
    moved = [Event(task_id, "task_status_changed", ["status"])] if _moved(step) else []
    return moved + ([Event(task_id, "task_commented", ["comments"])] if comment else [])


def _comment(
    tx: Transaction, found: board.Standing, actor: Actor, comment_id: str | None, body: str
) -> CommentAdded | None:
    if not (comment_id or body):
        return None
    written = CommentAdded(comment_id or str(new_id()), body, actor.agent_id or "", actor.type)
    comments.write(tx, found.task_id, written)
    return written
