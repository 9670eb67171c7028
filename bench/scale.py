"""How much is measured."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Scale:
    """Rounds, calls, ticks, messages or starts in each, rows, and how often memory is looked at."""

    rounds: int = 5
    calls: int = 400
    rows_before: int = 20_000
    sizes: tuple[int, ...] = (10_000, 1_000_000)
    queued: int = 100_000
    claims: int = 300
    tasks: tuple[int, ...] = (1_000, 1_000_000)
    ticks: int = 60
    batch: int = 1_000
    starts: int = 100
    memories: int = 3

    def with_five_million(self) -> Scale:
        """Return it with the largest size of P3 as well."""
        return replace(self, sizes=(*self.sizes, 5_000_000))


SMOKE = Scale(
    rounds=1,
    calls=5,
    rows_before=50,
    sizes=(100, 1_000),
    queued=1_000,
    claims=5,
    tasks=(200, 1_000),
    ticks=2,
    batch=20,
    starts=3,
    memories=1,
)
