"""Wake reasons, declared once (ADM-1.4)."""

from __future__ import annotations

from typing import Final

TASK_ASSIGNED: Final = "task_assigned"
TASK_COMMENT: Final = "task_comment"
TASK_MENTIONED: Final = "task_mentioned"
TASK_BLOCKERS_RESOLVED: Final = "task_blockers_resolved"
TASK_CHILDREN_COMPLETED: Final = "task_children_completed"
TASK_UNBLOCKED: Final = "task_unblocked"
TASK_REOPENED: Final = "task_reopened"
TASK_REOPENED_VIA_COMMENT: Final = "task_reopened_via_comment"
TASK_REVIEW_REQUESTED: Final = "task_review_requested"
AGENT_ERROR: Final = "agent_error"
MANUAL_RESUME: Final = "manual_resume"

REASONS: Final = frozenset({
    TASK_ASSIGNED,
    TASK_COMMENT,
    TASK_MENTIONED,
    TASK_BLOCKERS_RESOLVED,
    TASK_CHILDREN_COMPLETED,
    TASK_UNBLOCKED,
    TASK_REOPENED,
    TASK_REOPENED_VIA_COMMENT,
    TASK_REVIEW_REQUESTED,
    AGENT_ERROR,
    MANUAL_RESUME,
})  # fmt: skip

# Counts every reason that a later producer brings along (ADM-9.1).
CUSTOM: Final = "custom"


def label(reason: str) -> str:
    """Return the reason as a counter's label: itself when it is registered, `custom` otherwise."""
    return reason if reason in REASONS else CUSTOM
