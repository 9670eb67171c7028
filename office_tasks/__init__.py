"""Office Tasks: who may be woken, decided once, in Postgres."""

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
from office_tasks.tasks import (
    assign_task,
    create_task,
    pause_workspace,
    queue_run,
    resume_workspace,
    settle_mutation,
    spawn_run,
    task_created,
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
    "WorkspacePaused",
    "app",
    "assign_task",
    "create_task",
    "pause_workspace",
    "queue_run",
    "resume_workspace",
    "settle_mutation",
    "spawn_run",
    "task_created",
]
