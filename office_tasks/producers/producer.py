"""The producers, by name. A wake names its producer; a producer that is not named here cannot make one (PRO-1.1)."""

from __future__ import annotations

from enum import StrEnum


class Producer(StrEnum):
    """Whoever turns an occurrence into wakes."""

    QUEUE_RUN = "queue_run"
    SPAWN_RUN = "spawn_run"
    ASSIGN_TASK = "assign_task"
    CREATE_TASK = "create_task"
    TASK_CREATED = "task_created"
    TASK_UPDATED = "task_updated"
    ONBOARD_TASK = "onboard_task"
    ENTER_STEP = "enter_step"
    SET_TASK_STATUS = "set_task_status"
    ADD_COMMENT = "add_comment"
    RECOVERY_SWEEP = "recovery_sweep"
    FAILED_RUN = "failed_run"
    MANUAL_RESUME = "manual_resume"
