"""Who may do what (SES-5): a role's permissions, unless the agent has its own. Nothing in a payload authorizes."""

from __future__ import annotations

from typing import Final

from db.board import Person
from office_tasks.errors import Forbidden, NotFound
from office_tasks.prose import shown

ASSIGN: Final = "assign"
APPROVE: Final = "approve"

_BY_ROLE: Final = {"ceo": frozenset({ASSIGN, APPROVE}), "worker": frozenset({ASSIGN})}


def require(permission: str, caller_id: str | None, caller: Person | None) -> None:
    """Let the caller pass when it holds the permission; no caller is the user, who may do all.

    Raises:
        Forbidden: it does not, or it is not known.
    """
    if caller_id is None:
        return
    if caller is None:
        raise Forbidden(f"caller {shown(caller_id)} is no agent of this office, so it may not {permission}")
    own = caller.permissions
    held = frozenset(own) if own is not None else _BY_ROLE.get(caller.role, frozenset())
    if permission not in held:
        raise Forbidden(f"agent {shown(caller_id)} (role {shown(caller.role)}) may not {permission}")


def belongs(caller_id: str | None, caller: Person | None, workspace_id: str) -> None:
    """Let the caller pass when it is an agent of the workspace; no caller is the user, who is of every one.

    Raises:
        NotFound: there is no such agent.
        Forbidden: it is of another workspace.
    """
    if caller_id is None:
        return
    if caller is None:
        raise NotFound(f"there is no agent {shown(caller_id)}")
    if caller.workspace_id != workspace_id:
        raise Forbidden(f"agent {shown(caller_id)} is not of workspace {shown(workspace_id)}")
