"""What a gate decides, and what admission answers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from db.decide import Effect, Recorded


class Outcome(StrEnum):
    """What admission answered (ADM-7.1)."""

    QUEUED = "queued"
    COALESCED = "coalesced"
    DEDUPED = "deduped"
    RATE_LIMITED = "rate_limited"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Decision:
    """One gate's word, and the effect that is written with it."""

    outcome: Outcome
    effect: Effect = "name"
    run_id: uuid.UUID | None = None
    observed: int | None = None
    refusal: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What stands on the wake's row now, and whether this call put it there."""

    wake_id: str
    agent_profile_id: str
    reason: str
    key: str | None
    state: str
    outcome: Outcome
    gate: str | None
    run_id: uuid.UUID | None
    observed: int | None
    refusal: str | None
    message: str | None
    fresh: bool = field(default=False, compare=False)

    def result(self, allowance: int) -> Mapping[str, Any]:
        """Return the flat result of ADM-7.2."""
        return {
            "outcome": self.outcome.value,
            "reason": self.reason,
            "run_id": str(self.run_id) if self.run_id else None,
            "wake_id": self.wake_id,
            "key": self.key,
            "observed": self.observed,
            "allowance": None if self.observed is None else allowance,
        }

    def owed_result(self) -> dict[str, Any]:
        """Return the entry of a mutation's `wakes` (ADM-7.3)."""
        return {
            "wake_id": self.wake_id,
            "agent_profile_id": self.agent_profile_id,
            "reason": self.reason,
            "state": self.state,
            "outcome": self.outcome.value,
            "refusal": self.refusal,
            "run_id": str(self.run_id) if self.run_id else None,
        }


def from_row(wake_id: str, row: Recorded, *, fresh: bool = False) -> Answer:
    """Return the answer that a wake's row holds; an undecided row answers `none`."""
    return Answer(
        wake_id=wake_id,
        agent_profile_id=row.agent_profile_id,
        reason=row.reason,
        key=row.key,
        state=row.state,
        outcome=Outcome(row.outcome or "none"),
        gate=row.gate,
        run_id=row.run_id,
        observed=row.observed,
        refusal=row.refusal,
        message=row.last_error,
        fresh=fresh,
    )
