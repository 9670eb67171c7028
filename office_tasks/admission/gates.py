"""The six gates, and their order. The order is the contract (ADM-2)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from db.facts import Facts
from db.states import WAKEABLE
from office_tasks.admission.allowance import Standing, standing
from office_tasks.admission.decision import Decision, Outcome
from office_tasks.admission.wake import Wake
from office_tasks.errors import AgentNotFound, AgentNotWakeable, PauseGateUnavailable, WorkspacePaused
from office_tasks.prose import shown


class WhenUnread(Enum):
    """What a gate does when its own read fails."""

    ERROR = "the caller gets the error; nothing is written"
    CLOSED = "the wake is refused: a kill switch that fails open is no kill switch"
    OPEN = "the wake passes: a bounded cost beats an unbounded loss"


def agent_status(wake: Wake, facts: Facts) -> Decision | None:
    """Gate 1: refuse an agent that does not exist or may not be woken."""
    if facts.agent_status is None:
        return _refuse(AgentNotFound, f"there is no agent {shown(wake.agent_profile_id)}")
    if facts.agent_status != WAKEABLE:
        return _refuse(AgentNotWakeable, f"agent {shown(wake.agent_profile_id)} is {facts.agent_status}")
    return None


def workspace_pause(wake: Wake, facts: Facts) -> Decision | None:
    """Gate 2: refuse while the agent's workspace is paused, or while nobody can tell (ADM-2.6)."""
    if facts.paused is None:
        return _refuse(
            PauseGateUnavailable, f"cannot read whether the workspace of {shown(wake.agent_profile_id)} is paused"
        )
    if facts.paused:
        return _refuse(WorkspacePaused, f"the workspace of agent {shown(wake.agent_profile_id)} is paused")
    return None


def recent_duplicate(_wake: Wake, facts: Facts) -> Decision | None:
    """Gate 3: the key was seen within the lookback (ADM-3)."""
    return Decision(Outcome.DEDUPED, run_id=facts.duplicate_of) if facts.duplicate_of else None


def coalesce(_wake: Wake, facts: Facts) -> Decision | None:
    """Gate 4: a like wake is still waiting, merge into it (ADM-4)."""
    return Decision(Outcome.COALESCED, "merge", run_id=facts.merge_into) if facts.merge_into else None


def assignment_allowance(wake: Wake, facts: Facts) -> Decision | None:
    """Gate 5: agents have assigned this task often enough for now (ADM-5)."""
    exhausted = standing(wake, facts.assignments) is Standing.EXHAUSTED
    return Decision(Outcome.RATE_LIMITED, observed=facts.assignments) if exhausted else None


def insert(_wake: Wake, facts: Facts) -> Decision | None:
    """Gate 6: become a run; the unique index has the last word on the key (ADM-6)."""
    return Decision(Outcome.QUEUED, "insert", observed=facts.assignments)


class Gate(NamedTuple):
    """One gate: what it decides, what it reads to do so, and what it does when it cannot."""

    decide: Callable[[Wake, Facts], Decision | None]
    reads: str | None
    when_unread: WhenUnread


GATES: Final = (
    Gate(agent_status, "agent_status", WhenUnread.ERROR),
    Gate(workspace_pause, "paused", WhenUnread.CLOSED),
    Gate(recent_duplicate, "duplicate_of", WhenUnread.ERROR),
    Gate(coalesce, "merge_into", WhenUnread.ERROR),
    Gate(assignment_allowance, "assignments", WhenUnread.OPEN),
    Gate(insert, None, WhenUnread.ERROR),
)


def _refuse(
    error: type[AgentNotFound | AgentNotWakeable | WorkspacePaused | PauseGateUnavailable], sentence: str
) -> Decision:
    return Decision(Outcome.NONE, refusal=error.refusal, message=sentence)
