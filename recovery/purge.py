"""The purge: history past its retention is deleted, in short transactions, a bounded number of them a tick (REC-3.2).

Nothing that is still to be done is touched, however old: no queued or claimed run, no owed wake, no unsettled mutation.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from sqlalchemy import Engine

from db import clock, history
from db.engine import autocommit
from office_tasks.faults import fault_point

BATCH: Final = 1_000
# Of each table, in one tick: twenty thousand rows an hour.
BATCHES: Final = 20
AGENTS: Final = 500


@dataclass(frozen=True)
class Bounds:
    """How much one pass does: rows a transaction, transactions a table, agents looked at together."""

    batch: int = BATCH
    batches: int = BATCHES
    agents: int = AGENTS


def purge_once(
    engine: Engine, runs_for: dt.timedelta, history_for: dt.timedelta, bounds: Bounds | None = None
) -> dict[str, int | bool]:
    """Do one pass and return what it deleted of each table, and whether it stopped at its bound (`more`).

    Safe to run twice at once, and to kill anywhere (REC-3.4): each batch is a transaction of its own.

    Args:
        engine: each batch takes a connection from it, one after the other.
        runs_for: how long a run is kept after it ended; longer than any workspace's lookback (REC-3.3).
        history_for: how long wakes, mutations, events and deliveries are kept after they were over.
        bounds: how much of each table; the defaults when None.
    """
    bounds = bounds or Bounds()
    with autocommit(engine) as connection:
        instant = clock.now(connection)
    passes = {"runs": _runs(engine, instant - runs_for, bounds)}
    for ledger in history.LEDGERS:
        passes[ledger.table] = _ledger(engine, ledger, instant - history_for, bounds)
    # Only a batch that found something counts: looking at agents who have nothing to delete is cheap.
    deleted = {table: list(islice(filter(None, batches), bounds.batches)) for table, batches in passes.items()}
    more = any(len(counts) == bounds.batches for counts in deleted.values())
    return {**{table: sum(counts) for table, counts in deleted.items()}, "more": more}


def _runs(engine: Engine, before: dt.datetime, bounds: Bounds) -> Iterator[int]:
    """Yield the size of each batch of runs."""
    for agents in _agents(engine, bounds.agents):
        count = bounds.batch
        while count == bounds.batch:
            with engine.begin() as connection:
                count = history.delete_runs(connection, agents, before, bounds.batch)
                fault_point("history_deleted")
            yield count


def _agents(engine: Engine, most: int) -> Iterator[Sequence[str]]:
    behind = ""
    while True:
        with autocommit(engine) as connection:
            agents = history.agents_with_ended_runs(connection, behind, most)
        if not agents:
            return
        yield agents
        behind = agents[-1]


def _ledger(engine: Engine, ledger: history.Ledger, before: dt.datetime, bounds: Bounds) -> Iterator[int]:
    """Yield the size of each batch of a ledger's rows; each goes on where the last one ended."""
    since, count = history.BEGINNING, bounds.batch
    while count == bounds.batch:
        with engine.begin() as connection:
            count, until = history.delete(connection, ledger, since, before, bounds.batch)
            fault_point("history_deleted")
        yield count
        since = until or since
