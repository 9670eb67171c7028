"""Office Tasks: who may be woken, decided once, in Postgres.

Each name below is imported when it is first asked for: the command line, which lives in this package, answers `--help`
without loading Celery.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from office_tasks.celery_app import app
    from office_tasks.errors import (
        AgentNotFound,
        AgentNotWakeable,
        DatabaseError,
        Forbidden,
        InvalidInput,
        NotFound,
        OfficeError,
        PauseGateUnavailable,
        Poisoned,
        Refused,
        WorkspacePaused,
    )
    from office_tasks.execution.context import RetryAt, RunContext
    from office_tasks.in_session import assign, enqueue
    from office_tasks.tasks import (
        add_comment,
        add_participant,
        assign_task,
        claim_seat,
        create_task,
        delete_agent,
        enter_step,
        execute_run,
        onboard_task,
        pause_workspace,
        queue_run,
        remove_participant,
        resume_workspace,
        set_task_status,
        settle_mutation,
        spawn_run,
        task_created,
        task_updated,
        terminate_session,
    )

__all__ = [
    "AgentNotFound",
    "AgentNotWakeable",
    "DatabaseError",
    "Forbidden",
    "InvalidInput",
    "NotFound",
    "OfficeError",
    "PauseGateUnavailable",
    "Poisoned",
    "Refused",
    "RetryAt",
    "RunContext",
    "WorkspacePaused",
    "add_comment",
    "add_participant",
    "app",
    "assign",
    "assign_task",
    "claim_seat",
    "create_task",
    "delete_agent",
    "enqueue",
    "enter_step",
    "execute_run",
    "onboard_task",
    "pause_workspace",
    "queue_run",
    "remove_participant",
    "resume_workspace",
    "set_task_status",
    "settle_mutation",
    "spawn_run",
    "task_created",
    "task_updated",
    "terminate_session",
]


def __getattr__(name: str) -> object:
    if name in __all__:
        for home in ("errors", "execution.context", "celery_app", "tasks", "in_session"):
            module = import_module(f"{__name__}.{home}")
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
