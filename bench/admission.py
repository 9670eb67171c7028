"""P1 to P4: what an admission costs beside a bare insert, with many rows, and with a planner that knows nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from bench import rows
from bench.database import SESSIONS, Office, office, reconnected
from bench.interleave import interleave
from bench.result import Result
from bench.scale import Scale
from office_tasks.devstack import Postgres


def ratios(server: Postgres, scale: Scale) -> Iterator[Result]:
    """P1 and P2, on an analyzed database."""
    with office(server) as made:
        _admit_many(made, scale.rows_before)
        made.analyze()
        for condition, session in SESSIONS.items():
            with reconnected(made, server, session) as seen:
                samples = interleave(seen.calls(), rounds=scale.rounds, calls_per_round=scale.calls)
            yield Result.of("P1", condition, samples.ratio("user wake", "bare insert"), 1.8)
            yield Result.of("P2", condition, samples.ratio("agent wake", "bare insert"), 2.0)


def growth(server: Postgres, scale: Scale) -> Iterator[Result]:
    """P3: the same admission with few and with many rows in `runs` and `wakes`."""
    with ExitStack() as opened:
        made = {size: opened.enter_context(office(server)) for size in scale.sizes}
        for size, each in made.items():
            rows.fill(each, size)
            each.analyze()
        for condition, session in SESSIONS.items():
            with ExitStack() as stack:
                seen = {size: stack.enter_context(reconnected(each, server, session)) for size, each in made.items()}
                calls = {f"{size:,} rows": each.agent_wake for size, each in seen.items()}
                samples = interleave(calls, rounds=scale.rounds, calls_per_round=scale.calls)
            smallest, *larger = calls
            for name in larger:
                yield Result.of("P3", condition, samples.ratio(name, smallest), 1.15)


def never_analyzed(server: Postgres, scale: Scale) -> Iterator[Result]:
    """P4: rows arrive over a connection whose statements were prepared when the tables were empty.

    Empty and never looked at is what a fresh install is; empty and known to be empty misleads the planner more.
    `server` must not run autovacuum, which would analyze.
    """
    with office(server) as known, office(server) as unknown, office(server) as misled:
        misled.analyze()
        for each in (known, unknown, misled):
            _admit_many(each, scale.rows_before)
        known.analyze()
        for condition, session in SESSIONS.items():
            for name, value in session.items():
                unknown.run(f"SET {name} = {value}")
                misled.run(f"SET {name} = {value}")
            with reconnected(known, server, session) as analyzed:
                calls = {
                    "analyzed": analyzed.agent_wake,
                    "never analyzed": unknown.agent_wake,
                    "analyzed when empty": misled.agent_wake,
                }
                samples = interleave(calls, rounds=scale.rounds, calls_per_round=scale.calls)
            for name in ("never analyzed", "analyzed when empty"):
                yield Result.of("P4", condition, samples.ratio(name, "analyzed"), 1.3)


def _admit_many(made: Office, times: int) -> None:
    made.run("SET synchronous_commit = off")
    for _ in range(times):
        made.agent_wake()
    made.run("RESET synchronous_commit")
