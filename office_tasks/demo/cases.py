"""What the demo asks for, in order, and what the contract says must come of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from office_tasks.admission import gates
from office_tasks.demo.office import BACKLOG, DOING, HOME, PAUSED_LATER, RESUMED_LATER, RETRIED, SWEPT


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that is asked for.

    Args:
        asked: in words; consecutive cases in the same words with the same answer are one row of the table.
        task: the public Celery task, by the name it has in `office_tasks`.
        arguments: what it is given.
        happened: the outcome, or `owed`, `no wake`, `paused`, `resumed`, or the error's class.
        gate: the gate that decides, or None.
        why: in words; may name `{observed}`, `{allowance}`, `{replayed}` and `{said}`, the error's own sentence.
        ago: how long ago, for what cannot be waited for; None sends it to the worker now.
        slow: sent to the worker before the others, since it takes seconds; its answer is looked at in its turn.
    """

    asked: str
    task: str
    arguments: Mapping[str, Any]
    happened: str
    gate: str | None
    why: str
    ago: dt.timedelta | None = None
    slow: bool = False


AGENT_STATUS: Final = gates.agent_status.__name__
WORKSPACE_PAUSE: Final = gates.workspace_pause.__name__
RECENT_DUPLICATE: Final = gates.recent_duplicate.__name__
COALESCE: Final = gates.coalesce.__name__
ALLOWANCE_GATE: Final = gates.assignment_allowance.__name__
INSERT: Final = gates.insert.__name__

_NOTHING_OBJECTS: Final = "no gate objects: a run is queued"
_NOBODY: Final = "nobody is to be woken, so no gate is asked"


def _create(task_id: str, assignee_id: str, step_id: str = DOING) -> dict[str, str]:
    return {
        "workspace_id": HOME,
        "title": task_id,
        "task_id": task_id,
        "step_id": step_id,
        "assignee_id": assignee_id,
    }


def _assign(task_id: str, assignee_id: str, caller_agent_id: str = "") -> dict[str, str]:
    return {"task_id": task_id, "assignee_id": assignee_id, "caller_agent_id": caller_agent_id}


def _wake(
    agent: str, payload: object = None, *, reason: str = "manual_resume", key: str | None = None
) -> dict[str, Any]:
    return {"agent_profile_id": agent, "reason": reason, "payload": payload, "idempotency_key": key}


_ONE_TASK: Final = (
    Case("create task door for ada", "create_task", _create("door", "ada"), "queued", INSERT, _NOTHING_OBJECTS),
    Case(
        "assign door to ada once more",
        "assign_task",
        _assign("door", "ada"),
        "coalesced",
        COALESCE,
        "a new occurrence, but her run of the last 5 s still waits: merged into it",
    ),
    Case(
        "another system's event reports the creation of door",
        "task_created",
        {"task_id": "door", "assignee_id": "ada", "assignment_generation": 1},
        "deduped",
        RECENT_DUPLICATE,
        "the same occurrence told twice: its key was seen within 24 h",
    ),
    Case("unassign door", "assign_task", _assign("door", ""), "no wake", None, _NOBODY),
    Case(
        "create task shed for ben, in the backlog",
        "create_task",
        _create("shed", "ben", BACKLOG),
        "no wake",
        None,
        "the step does not auto-start work",
    ),
)

_REPORT: Final = _wake("ben", {"week": 47}, reason="weekly_report", key="report:week-47")
_OVER_TIME: Final = (
    Case(
        "wake ben under the key report:week-47",
        "queue_run",
        _REPORT,
        "queued",
        INSERT,
        _NOTHING_OBJECTS,
        ago=dt.timedelta(hours=25),
    ),
    Case(
        "the same key again",
        "queue_run",
        _REPORT,
        "deduped",
        INSERT,
        "first seen 25 h ago, too long for gate 3; the unique index still holds it",
    ),
    Case(
        "create task letter for ada",
        "create_task",
        _create("letter", "ada"),
        "queued",
        INSERT,
        _NOTHING_OBJECTS,
        ago=dt.timedelta(minutes=30),
    ),
    Case(
        "assign letter to ben",
        "assign_task",
        _assign("letter", "ben"),
        "queued",
        INSERT,
        "another generation, another key",
        ago=dt.timedelta(minutes=20),
    ),
    Case(
        "assign letter to ada again (A, B, A)",
        "assign_task",
        _assign("letter", "ada"),
        "queued",
        INSERT,
        "generation 3 is an occurrence of its own: not swallowed by the first",
    ),
)

_LOOP: Final = (
    *(
        Case(
            "agent cleo assigns task loop, each time to another agent",
            "assign_task",
            _assign("loop", agent, "cleo"),
            "queued",
            INSERT,
            "within the allowance of the task",
        )
        for agent in ("ada", "ben", "cleo", "dan", "eli")
    ),
    Case(
        "agent cleo assigns loop once more, to fay",
        "assign_task",
        _assign("loop", "fay", "cleo"),
        "rate_limited",
        ALLOWANCE_GATE,
        "{observed} assignments by agents within 10 min, {allowance} allowed; fay is the assignee all the same",
    ),
    Case(
        "a user assigns loop to fay",
        "assign_task",
        _assign("loop", "fay"),
        "queued",
        INSERT,
        "users are never limited",
    ),
    Case(
        "wake dan for an agent's assignment of no named task",
        "queue_run",
        _wake("dan", {"actor_type": "agent", "actor_id": "cleo"}, reason="task_assigned"),
        "queued",
        INSERT,
        "no task to count by: admitted, counted and logged as unattributed",
    ),
)

_REFUSED: Final = (
    Case("wake zoe, whom nobody knows", "queue_run", _wake("zoe"), "AgentNotFound", AGENT_STATUS, "{said}"),
    Case("wake sam, who is stopped", "queue_run", _wake("sam"), "AgentNotWakeable", AGENT_STATUS, "{said}"),
    Case(
        "create task fence for sam",
        "create_task",
        _create("fence", "sam"),
        "none",
        AGENT_STATUS,
        "the assignment stands, its wake is closed: sam is stopped",
    ),
    Case(
        "create task hedge for gus",
        "create_task",
        _create(SWEPT, RESUMED_LATER),
        "none",
        AGENT_STATUS,
        "the assignment stands, its wake is closed: gus is paused",
    ),
    Case("pause workspace annex", "pause_workspace", {"workspace_id": PAUSED_LATER}, "paused", None, "the kill switch"),
    Case("wake eve, of annex", "queue_run", _wake("eve"), "WorkspacePaused", WORKSPACE_PAUSE, "{said}"),
    Case(
        "assign task crate, of annex, to eve",
        "assign_task",
        _assign("crate", "eve"),
        "owed",
        WORKSPACE_PAUSE,
        "the assignment stands, its wake is kept for after the pause",
    ),
    Case(
        "resume workspace annex",
        "resume_workspace",
        {"workspace_id": PAUSED_LATER},
        "resumed",
        None,
        "it works again; what it was owed passes the gates now: {replayed}",
    ),
    Case("wake eve again", "queue_run", _wake("eve"), "queued", INSERT, _NOTHING_OBJECTS),
    Case(
        "wake ivy, whose workspace is gone",
        "queue_run",
        _wake("ivy"),
        "PauseGateUnavailable",
        WORKSPACE_PAUSE,
        "{said}, which counts as paused",
        slow=True,
    ),
)

_REJECTED: Final = (
    Case(
        "wake ada with a NUL character in the payload",
        "queue_run",
        _wake("ada", {"note": "a\0b"}),
        "InvalidInput",
        None,
        "{said}; nothing was written",
    ),
    Case(
        "agent rex, a reviewer, assigns loop",
        "assign_task",
        _assign("loop", "ada", "rex"),
        "Forbidden",
        None,
        "{said}; nothing was written",
    ),
    Case(
        "assign task attic",
        "assign_task",
        _assign("attic", "ada"),
        "NotFound",
        None,
        "{said}; nothing was written",
    ),
)

_FOR_LATER: Final = (
    Case("create task kiln for ben", "create_task", _create(RETRIED, "ben"), "queued", INSERT, _NOTHING_OBJECTS),
)

CASES: Final = (*_ONE_TASK, *_OVER_TIME, *_LOOP, *_REFUSED, *_REJECTED, *_FOR_LATER)
