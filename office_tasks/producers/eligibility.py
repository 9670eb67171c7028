"""Whether a task's assignee may be woken: the rule that every producer of `task_assigned` shares (PRO-3.3, PRO-3.4)."""

from __future__ import annotations

from typing import Final

import structlog

from db.board import Standing

log: Final = structlog.stdlib.get_logger("office")

NOT_AN_OFFICE_TASK: Final = "not_an_office_task"
STEP_DOES_NOT_AUTO_START: Final = "step_does_not_auto_start"


def withheld(standing: Standing, producer: str) -> str | None:
    """Return why nobody is woken for this task, or None when its assignee may be; says so in the log."""
    why = _why(standing)
    if why:
        log.info("wake_withheld", task_id=standing.task_id, step_id=standing.step_id, producer=producer, why=why)
    elif standing.step_id and not standing.step_found:
        log.warning("step_unreadable", task_id=standing.task_id, step_id=standing.step_id, producer=producer)
    return why


def _why(standing: Standing) -> str | None:
    if not standing.is_office:
        return NOT_AN_OFFICE_TASK
    if standing.step_found and not standing.auto_start:
        return STEP_DOES_NOT_AUTO_START
    return None
