"""Every error a caller can meet, under one root.

Each takes one sentence and nothing else, so that it crosses the result backend unchanged: as the class for callers that
import this module, as name and sentence for others (ADM-7.3).
"""

from __future__ import annotations

from typing import ClassVar


class OfficeError(Exception):
    """Root of the office's errors."""


class InvalidInput(OfficeError, ValueError):
    """Something that was given cannot be accepted; nothing was written (ADM-8.2). Never retried."""


class NotFound(OfficeError, LookupError):
    """A task, agent, step or workspace that was named does not exist; nothing was written."""


class Forbidden(OfficeError):
    """The calling agent does not hold the permission; nothing was written (SES-5)."""


class DatabaseError(OfficeError):
    """Postgres failed in a way that no retry mends; SQLSTATE and sentence, never a statement or a value."""


class Poisoned(OfficeError):
    """The message was delivered too often, each time taking its worker with it; it was given up (ADM-10.5)."""


class Refused(OfficeError):
    """Gate 1 or 2 declined the wake."""

    refusal: ClassVar[str]


class AgentNotFound(Refused):
    """Gate 1: there is no such agent."""

    refusal = "agent_not_found"


class AgentNotWakeable(Refused):
    """Gate 1: the agent is paused, stopped or pending approval."""

    refusal = "agent_not_wakeable"


class WorkspacePaused(Refused):
    """Gate 2: the agent's workspace is paused."""

    refusal = "workspace_paused"


class PauseGateUnavailable(Refused):
    """Gate 2: whether the workspace is paused cannot be read, which counts as paused. Retried 5 times."""

    refusal = "pause_gate_unavailable"


REFUSALS: dict[str, type[Refused]] = {
    kind.refusal: kind for kind in (AgentNotFound, AgentNotWakeable, WorkspacePaused, PauseGateUnavailable)
}
POISONED = "poisoned"
