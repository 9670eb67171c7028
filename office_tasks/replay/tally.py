"""The totals: every event counted once, and the wake it owes counted once, by its outcome."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from office_tasks.admission import Outcome
from office_tasks.replay.events import CREATE, Event

MOST: Final = 10
KINDS: Final = ("created", "assigned", "unassigned", "invalid", "already_applied")
OUTCOMES: Final = ("queued", "coalesced", "deduped", "rate_limited", "refused", "owed")


@dataclass
class Tally:
    """What became of the events so far."""

    counts: Counter[str] = field(default_factory=Counter)
    rate_limited: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def events(self) -> int:
        """How many events were accounted for."""
        return sum(self.counts[kind] for kind in KINDS)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure what is done inside, however it ends."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds = time.monotonic() - start

    def invalid(self, number: int = 1) -> None:
        """Count lines that are no event, or events that cannot be applied."""
        self.counts["invalid"] += number

    def already_applied(self, number: int = 1) -> None:
        """Count events that an earlier replay applied, together with what they owed then."""
        self.counts["already_applied"] += number

    def applied(self, event: Event, outcomes: Sequence[str]) -> None:
        """Count an event that was applied now, and each wake it owed by its outcome."""
        self.counts[_kind(event)] += 1
        self.counts.update(outcomes)
        if limited := outcomes.count(Outcome.RATE_LIMITED.value):
            self.rate_limited[event.task_id] += limited

    def summary(self) -> dict[str, Any]:
        """Return the one object of `--json`."""
        most = sorted(self.rate_limited.items(), key=lambda item: (-item[1], item[0]))[:MOST]
        return {
            "events": self.events,
            **{name: self.counts[name] for name in (*KINDS[:3], *OUTCOMES, *KINDS[3:])},
            "seconds": round(self.seconds, 3),
            "most_rate_limited": [{"task_id": task_id, "rate_limited": count} for task_id, count in most],
        }


def _kind(event: Event) -> str:
    if event.kind == CREATE:
        return "created"
    return "assigned" if event.assignee_id else "unassigned"


def outcomes(result: Mapping[str, Any]) -> list[str]:
    """Return what became of each wake in a mutation's result."""
    return [_outcome(wake) for wake in result["wakes"]]


def _outcome(wake: Mapping[str, Any]) -> str:
    if wake["state"] == "owed":
        return "owed"
    return "refused" if wake["outcome"] == Outcome.NONE else str(wake["outcome"])
