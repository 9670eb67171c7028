"""Taking a task in hand: its row is locked first, so that what is read about it stays true until the commit."""

from __future__ import annotations

from db import board
from office_tasks.errors import NotFound
from office_tasks.permissions import belongs
from office_tasks.producers.mutation import THE_USER, Actor, Transaction


def locked(tx: Transaction, task_id: str, actor: Actor = THE_USER) -> board.Standing:
    """Lock a task for somebody and return where it stands.

    Raises:
        NotFound: no such task, or no such agent.
        Forbidden: the agent is of another workspace.
    """
    exists, people = board.lock_task(tx.connection, task_id, actor.agent_id)
    found = board.standing(tx.connection, task_id) if exists else None
    if found is None:
        raise NotFound(f"there is no task {task_id!r}")
    belongs(actor.agent_id, people.get(actor.agent_id or ""), found.workspace_id)
    return found
