"""Where a wake stands with the assignment allowance (ADM-5.1)."""

from __future__ import annotations

from enum import Enum

from office_tasks.admission.wake import Wake
from office_tasks.admission.windows import ASSIGNMENT_ALLOWANCE


class Standing(Enum):
    """The rows of ADM-5.1 that differ; the value is the counter's reason, where it moves one."""

    OUT_OF_SCOPE = None
    WITHIN = "within"
    UNATTRIBUTED = "task_unattributed"
    UNCOUNTED = "count_read_failed"
    EXHAUSTED = "allowance_exhausted"


def standing(wake: Wake, assignments: int | None) -> Standing:
    """Return where the wake stands, given how many agent-initiated assignments its task has had (None: unread)."""
    if not wake.is_agent_assignment:
        return Standing.OUT_OF_SCOPE
    if wake.task_id is None:
        return Standing.UNATTRIBUTED
    if assignments is None:
        return Standing.UNCOUNTED
    return Standing.EXHAUSTED if assignments >= ASSIGNMENT_ALLOWANCE else Standing.WITHIN
