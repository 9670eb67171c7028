"""The closed vocabularies that the schema checks, each declared once."""

from __future__ import annotations

from typing import Final

WAKEABLE: Final = "active"
AGENT_STATUSES: Final = (WAKEABLE, "paused", "stopped", "pending_approval")
TASK_STATUSES: Final = ("todo", "in_progress", "in_review", "blocked", "done", "cancelled")
RUN_LIVE: Final = ("queued", "claimed")
RUN_TERMINAL: Final = ("finished", "failed", "cancelled")
SEAT_ROLES: Final = ("runner", "reviewer", "approver", "collaborator", "watcher")
SESSION_LIVE: Final = ("idle", "running")
SESSION_TERMINAL: Final = ("completed", "failed", "cancelled")
OUTCOMES: Final = ("queued", "coalesced", "deduped", "rate_limited", "none")
