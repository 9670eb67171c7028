"""Wake reasons, declared once (ADM-1.4)."""

from __future__ import annotations

from typing import Final

TASK_ASSIGNED: Final = "task_assigned"
CUSTOM: Final = "custom"

REASONS: Final = frozenset({
    TASK_ASSIGNED,
    "task_comment",
    "task_mentioned",
    "task_blockers_resolved",
    "task_children_completed",
    "task_unblocked",
    "task_reopened",
    "task_reopened_via_comment",
    "task_review_requested",
    "agent_error",
    "manual_resume",
})  # fmt: skip


def label(reason: str) -> str:
    """Return the reason as a counter's label: itself when it is registered, `custom` otherwise (ADM-9.1)."""
    return reason if reason in REASONS else CUSTOM
