"""Running executions, and asking them to stop; runs that an operator cancels."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import Connection, text

from db.clock import AT
from db.lifecycle import CLAIMED, QUEUED, RUN
from db.statement import Statement

# Why a run was cancelled, or is asked to stop.
INTERRUPTED: Final = "interrupted"
WORKSPACE_PAUSED: Final = "workspace_paused"
OPERATOR: Final = "operator"

# What cancels a queued run: it ends here and now.
CANCELLED: Final = f"""status = '{RUN["cancel"].target}', finished_at = {AT}, scheduled_retry_at = NULL"""

Scope = Literal["task", "workspace"]


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Whose executions are to stop, as a change that committed then asked for.

    `task_id` names those on a task (of one agent, or of all when none is named); `workspace_id` those of a workspace's
    agents. A change names one of the two.
    """

    committed_at: dt.datetime
    task_id: str | None = None
    agent_profile_id: str | None = None
    workspace_id: str | None = None

    @property
    def scope(self) -> Scope:
        """Tell which of the two is named."""
        return "workspace" if self.workspace_id else "task"


# Only what was claimed before the change was committed: what the change itself caused, or came later, goes on.
_BEFORE: Final = "claimed_at <= CAST(:committed_at AS timestamptz)"
_WHOSE: Final[Mapping[Scope, tuple[str, str]]] = {
    "task": (
        INTERRUPTED,
        "task_id = :task_id AND (CAST(:agent_profile_id AS text) IS NULL OR agent_profile_id = :agent_profile_id)",
    ),
    # A pause waits for the claims that are under way, and no claim follows it.
    "workspace": (
        WORKSPACE_PAUSED,
        "agent_profile_id = ANY(ARRAY(SELECT id FROM agents WHERE workspace_id = :workspace_id))",
    ),
}


def interrupting(scope: Scope) -> str:
    """Return the statement that asks the executions of an `Interrupt` of that scope to stop, and returns their runs."""
    reason, whose = _WHOSE[scope]
    return f"""
        UPDATE runs SET cancel_requested_at = office_now(), cancel_reason = '{reason}'
        WHERE {whose} AND {_BEFORE} AND {CLAIMED} AND cancel_requested_at IS NULL
        RETURNING id"""


_INTERRUPT: Final[Mapping[Scope, Statement]] = {
    scope: Statement(f"WITH asked AS ({interrupting(scope)}) SELECT CAST(id AS text) FROM asked ORDER BY id")
    for scope in _WHOSE
}

# A queued run ends here and now; a claimed one is asked to. Whatever became of it meanwhile is seen under its lock.
_CANCEL: Final = text(f"""
    UPDATE runs SET cancel_reason = :reason, scheduled_retry_at = NULL,
           status = CASE WHEN {QUEUED} THEN '{RUN["cancel"].target}' ELSE status END,
           finished_at = CASE WHEN {QUEUED} THEN {AT} END,
           cancel_requested_at = CASE WHEN {CLAIMED} THEN {AT} END
    WHERE id = :id AND ({QUEUED} OR {CLAIMED} AND cancel_requested_at IS NULL)
    RETURNING status""")


def whom(interrupt: Interrupt | None) -> dict[str, Any]:
    """Return the parameters of `interrupting`; None interrupts nobody."""
    names = Interrupt.__dataclass_fields__
    return {name: getattr(interrupt, name) if interrupt else None for name in names}


def interrupt(connection: Connection, wanted: Interrupt) -> list[str]:
    """Ask the executions to stop; return the runs. Repeatable."""
    return list(_INTERRUPT[wanted.scope].run(connection, whom(wanted)).scalars())


def cancel(connection: Connection, run_id: uuid.UUID, reason: str, instant: dt.datetime | None = None) -> str | None:
    """Cancel a run: a queued one at once, a claimed one by asking its execution to stop (REC-2.10).

    Returns:
        Its status from now on, `cancelled` or `claimed`; None when nothing was written: there is no such run, it is
        over, or it was asked before.
    """
    status: str | None = connection.execute(
        _CANCEL, {"id": run_id, "reason": reason, "instant": instant}
    ).scalar_one_or_none()
    return status
