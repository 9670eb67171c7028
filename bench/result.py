"""One line of the report: a measure, its target, what was seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench.interleave import Ratio


@dataclass(frozen=True)
class Result:
    """One figure; `target` None means that it is only reported."""

    measure: str
    condition: str
    value: float
    target: float | None
    at_most: bool = True
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.target is None:
            return None
        return self.value <= self.target if self.at_most else self.value >= self.target

    @classmethod
    def of(cls, measure: str, condition: str, seen: Ratio, target: float | None) -> Result:
        """Return the result that a ratio is."""
        detail = {
            f"p50 {seen.measured}, us": round(seen.p50 * 1e6),
            f"p50 {seen.against}, us": round(seen.p50_against * 1e6),
            "median of rounds": round(seen.median_of_rounds, 3),
            "rounds": [round(each, 3) for each in seen.rounds],
        }
        return cls(measure, condition, seen.ratio, target, detail=detail)
