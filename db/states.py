"""The closed vocabularies that the schema checks, each declared once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

WAKEABLE: Final = "active"
AGENT_STATUSES: Final = (WAKEABLE, "paused", "stopped", "pending_approval")
TASK_CLOSED: Final = ("done", "cancelled")
TASK_STATUSES: Final = ("todo", "in_progress", "in_review", "blocked", *TASK_CLOSED)
RUN_LIVE: Final = ("queued", "claimed")
RUN_TERMINAL: Final = ("finished", "failed", "cancelled")
SEAT_ROLES: Final = ("runner", "reviewer", "approver", "collaborator", "watcher")
SESSION_LIVE: Final = ("idle", "running")
SESSION_TERMINAL: Final = ("completed", "failed", "cancelled")
OUTCOMES: Final = ("queued", "coalesced", "deduped", "rate_limited", "none")


def literals(values: Iterable[str]) -> str:
    """Return them as a list of SQL literals, for `IN (…)`: a partial index serves these, and no parameter."""
    return ", ".join(f"'{value}'" for value in values)
