"""Taking a task in hand: its row is locked first, so that what is read about it stays true until the commit."""

from __future__ import annotations

from db import board
from office_tasks.errors import NotFound
from office_tasks.producers.mutation import Transaction


def locked(tx: Transaction, task_id: str) -> board.Standing:
    """Lock a task and return where it stands.

    Raises:
        NotFound: no such task.
    """
    exists, _ = board.lock_task(tx.connection, task_id)
    found = board.standing(tx.connection, task_id) if exists else None
    if found is None:
        raise NotFound(f"there is no task {task_id!r}")
    return found
