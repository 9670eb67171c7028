"""Adding a comment, and whom it wakes (PRO-5.2)."""

from __future__ import annotations

import datetime as dt
from functools import partial

from sqlalchemy import Engine

from db import comments
from office_tasks import validation
from office_tasks.admission.wake import AGENT, USER
from office_tasks.errors import InvalidInput
from office_tasks.producers.after import Result
from office_tasks.producers.lock import locked
from office_tasks.producers.mutation import Actor, Change, Event, Transaction, commit
from office_tasks.producers.producer import Producer
from office_tasks.producers.reactions import Changed, CommentAdded, react
from office_tasks.prose import shown

AUTHORS = (USER, AGENT)


def add_comment(
    engine: Engine,
    mutation_id: str,
    task_id: object,
    comment_id: object,
    body: object,
    author_type: object,
    author_id: object,
    instant: dt.datetime | None = None,
) -> Result:
    """Add a comment to a task; it wakes the assignee and everybody that it mentions, but never its author.

    Raises:
        InvalidInput: an identifier that is none, an unknown kind of author, or the id of another comment.
        NotFound: no such task, or no such author agent.
        Forbidden: the author agent is of another workspace.
    """
    written = CommentAdded(
        id=validation.identifier("comment_id", comment_id),
        body=validation.text("body", body, limit=validation.MAX_BODY_BYTES),
        author_id=validation.identifier("author_id", author_id),
        author_type=_author_type(author_type),
    )
    work = partial(
        _add,
        task_id=validation.identifier("task_id", task_id),
        comment=written,
        actor=Actor(written.author_type, written.author_id),
    )
    return commit(engine, mutation_id, work, instant)


def _author_type(value: object) -> str:
    if not isinstance(value, str) or value not in AUTHORS:
        raise InvalidInput(f"author_type: must be user or agent, not {shown(value)}")
    return value


def write(tx: Transaction, task_id: str, comment: CommentAdded) -> None:
    """Insert the comment, or find that it is there: whoever sends it twice means one occurrence.

    Raises:
        InvalidInput: its id belongs to another comment.
    """
    row = {
        "id": comment.id,
        "task_id": task_id,
        "author_type": comment.author_type,
        "author_id": comment.author_id,
        "body": comment.body,
        "instant": tx.instant,
    }
    if not comments.add(tx.connection, row):
        raise InvalidInput(f"comment_id: there is another comment {shown(comment.id)}")


def _add(tx: Transaction, *, task_id: str, comment: CommentAdded, actor: Actor) -> Change:
    found = locked(tx, task_id, actor)
    write(tx, task_id, comment)
    return Change(
        kind="add_comment",
        actor=actor,
        task_id=task_id,
        result={"mutation_id": tx.mutation_id, "task_id": task_id, "comment_id": comment.id},
        wakes=react(tx.connection, Changed(Producer.ADD_COMMENT, found, comment=comment), tx.mutation_id),
        events=[Event(task_id, "task_commented", ["comments"])],
    )
