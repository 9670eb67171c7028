"""Time calls against each other, one of each in turn: on a shared disk, phases one after another compare nothing."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

Call = Callable[[], object]


@runtime_checkable
class Prepared(Protocol):
    """A call that needs something before each time, which is not timed."""

    def before(self) -> None:
        """Prepare the next call."""

    def __call__(self) -> object:
        """Do what is timed."""


WARM_UP = 20  # past the driver's prepare threshold, and past Postgres's five custom plans


@dataclass(frozen=True)
class Ratio:
    """One call against another, seconds."""

    measured: str
    against: str
    p50: float
    p50_against: float
    ratio: float
    median_of_rounds: float
    rounds: tuple[float, ...]


@dataclass(frozen=True)
class Samples:
    """Seconds of each call, by name, a list for each round."""

    rounds: list[Mapping[str, list[float]]]

    def p50(self, name: str) -> float:
        """Return the median seconds of one call over all rounds."""
        return statistics.median(seconds for done in self.rounds for seconds in done[name])

    def ratio(self, measured: str, against: str) -> Ratio:
        """Return one call against another: of all rounds, and of each."""
        each = tuple(statistics.median(r[measured]) / statistics.median(r[against]) for r in self.rounds)
        above, below = self.p50(measured), self.p50(against)
        return Ratio(measured, against, above, below, above / below, statistics.median(each), each)


def interleave(calls: Mapping[str, Call], *, rounds: int, calls_per_round: int) -> Samples:
    """Return the seconds that each call took, called in turn, each time beginning with another one."""
    for call in calls.values():
        for _ in range(WARM_UP):
            _seconds(call)
    return Samples([_round(calls, calls_per_round) for _ in range(rounds)])


def _round(calls: Mapping[str, Call], times: int) -> Mapping[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    gc.collect()
    for _ in range(times):
        for name in order:
            taken[name].append(_seconds(calls[name]))
        order.append(order.pop(0))
    return taken


def _seconds(call: Call) -> float:
    if isinstance(call, Prepared):
        call.before()
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun
