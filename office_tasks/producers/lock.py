"""Taking a task in hand: its row is locked first, so that what is read about it stays true until the commit."""

from __future__ import annotations

from collections.abc import Mapping

from db import board
from office_tasks.errors import NotFound
from office_tasks.permissions import belongs, require
from office_tasks.producers.mutation import THE_USER, Actor, Transaction
from office_tasks.prose import shown


def locked(tx: Transaction, task_id: str, actor: Actor = THE_USER) -> board.Standing:
    """Lock a task for somebody and return where it stands.

    Raises:
        NotFound: no such task, or no such agent.
        Forbidden: the agent is of another workspace.
    """
    found, _ = locked_with(tx, task_id, actor)
    return found


def locked_with(
    tx: Transaction, task_id: str, actor: Actor, *people: str | None, permission: str | None = None
) -> tuple[board.Standing, Mapping[str, board.Person]]:
    """Lock a task for somebody who needs a permission for it; return where it stands, and those of `people` there are.

    Raises:
        NotFound: no such task, or no such calling agent.
        Forbidden: the calling agent does not hold the permission, or is of another workspace.
    """
    exists, known = board.lock_task(tx.connection, task_id, actor.agent_id, *people)
    caller = known.get(actor.agent_id or "")
    if permission:
        require(permission, actor.agent_id, caller)
    found = board.standing(tx.connection, task_id) if exists else None
    if found is None:
        raise NotFound(f"there is no task {shown(task_id)}")
    belongs(actor.agent_id, caller, found.workspace_id)
    return found, known
