"""History that retention deletes: what has ended and is past its time, a bounded batch at a time (REC-3.2)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import Connection, TextClause, text

from db.states import RUN_TERMINAL, literals

# Before every row that there can be.
BEGINNING: Final = dt.datetime.min.replace(tzinfo=dt.UTC)

# However old, an agent's newest runs stay.
KEPT_RUNS: Final = 20

_ENDED: Final = f"status IN ({literals(RUN_TERMINAL)})"

# Each next agent by one descent of the index, however many runs lie between: agents that are gone have runs too.
_AGENTS: Final = text(f"""
    WITH RECURSIVE walk (id, place) AS (
        (SELECT agent_profile_id, 1 FROM runs WHERE {_ENDED} AND agent_profile_id > :behind
         ORDER BY agent_profile_id LIMIT 1)
        UNION ALL
        SELECT following.id, place + 1 FROM walk CROSS JOIN LATERAL (
            SELECT agent_profile_id AS id FROM runs WHERE {_ENDED} AND agent_profile_id > walk.id
            ORDER BY agent_profile_id LIMIT 1) following
        WHERE place < :most)
    SELECT id FROM walk ORDER BY id""")

# Walk an index in its order and stop at the limit: without statistics, or by an old plan, Postgres would rather collect
# and sort all that is past its time, to delete the first thousand of it.
OFF: Final = ("enable_sort", "enable_hashjoin", "enable_mergejoin", "enable_material")
_IN_ORDER: Final = text("SELECT " + ", ".join(f"set_config('{name}', 'off', true)" for name in OFF))

# The row comparison stands beside a plain one on `finished_at`, which is what the index can be searched by; what the
# delete checks again stands in an IS TRUE, which no index can: its rows are found by their key.
_DELETE_RUNS: Final = text(f"""
    WITH doomed AS MATERIALIZED (
        SELECT old.id
        FROM unnest(CAST(:agents AS text[])) AS agent (id)
        CROSS JOIN LATERAL (
            SELECT finished_at, runs.id FROM runs WHERE agent_profile_id = agent.id AND {_ENDED}
            ORDER BY finished_at DESC, runs.id DESC OFFSET {KEPT_RUNS - 1} LIMIT 1) AS last_kept
        CROSS JOIN LATERAL (
            SELECT runs.id FROM runs
            WHERE agent_profile_id = agent.id AND {_ENDED} AND finished_at < :before
              AND finished_at <= last_kept.finished_at
              AND (finished_at, runs.id) < (last_kept.finished_at, last_kept.id)
            ORDER BY finished_at LIMIT :most FOR UPDATE SKIP LOCKED) AS old
        LIMIT :most),
    gone AS (
        DELETE FROM runs USING doomed
        WHERE runs.id = doomed.id AND (runs.{_ENDED} AND runs.finished_at < :before) IS TRUE
        RETURNING runs.id)
    SELECT count(*) FROM gone""")


def _delete(table: str, age: str, over: str) -> TextClause:
    """Return the statement that deletes one batch of `table`, oldest first, of rows for which `over` holds."""
    past = f"{table}.{age} < :before AND {over}"
    return text(f"""
    WITH doomed AS MATERIALIZED (
        SELECT id FROM {table} WHERE {table}.{age} >= :since AND {past}
        ORDER BY {age} LIMIT :most FOR UPDATE SKIP LOCKED),
    gone AS (
        DELETE FROM {table} USING doomed WHERE {table}.id = doomed.id AND ({past}) IS TRUE
        RETURNING {table}.{age} AS age)
    SELECT count(*) AS deleted, max(age) AS until FROM gone""")


@dataclass(frozen=True)
class Ledger:
    """A table that keeps what happened for a while."""

    table: str
    delete: TextClause


# The answer of a mutation that nobody settled yet is put together from its wakes. A replay's rows bear the instants of
# its file, and are how it knows what it did before: they stay. Each is asked of the row at hand, by a key: no join that
# a plan could turn around.
_WAKES: Final = """wakes.state <> 'owed'
    AND coalesce((SELECT settled_at IS NOT NULL FROM mutations WHERE mutations.id = wakes.mutation_id), true)
    AND (SELECT is_replay FROM agents JOIN workspaces ON workspaces.id = agents.workspace_id
         WHERE agents.id = wakes.agent_profile_id) IS NOT TRUE"""
_MUTATIONS: Final = """mutations.settled_at IS NOT NULL
    AND (SELECT bool_or(wakes.state = 'owed') FROM wakes WHERE wakes.mutation_id = mutations.id) IS NOT TRUE
    AND (SELECT is_replay FROM tasks JOIN workspaces ON workspaces.id = tasks.workspace_id
         WHERE tasks.id = mutations.task_id) IS NOT TRUE"""

LEDGERS: Final = (
    Ledger("wakes", _delete("wakes", "decided_at", _WAKES)),
    Ledger("mutations", _delete("mutations", "settled_at", _MUTATIONS)),
    Ledger("events", _delete("events", "sent_at", "events.sent_at IS NOT NULL")),
    Ledger("deliveries", _delete("deliveries", "last_at", "true")),
)


class Batch(NamedTuple):
    """What one statement deleted: how many rows, and the age of the youngest, where the next one goes on."""

    deleted: int
    until: dt.datetime | None


def agents_with_ended_runs(connection: Connection, behind: str, most: int) -> Sequence[str]:
    """Return the next agents, by id, that have runs which ended; agents may be gone from the office."""
    return connection.execute(_AGENTS, {"behind": behind, "most": most}).scalars().all()


def delete_runs(connection: Connection, agents: Sequence[str], before: dt.datetime, most: int) -> int:
    """Delete at most `most` of the agents' runs that ended before `before`, never one's newest; return how many."""
    connection.execute(_IN_ORDER)
    params = {"agents": list(agents), "before": before, "most": most}
    return int(connection.execute(_DELETE_RUNS, params).scalar_one())


def delete(connection: Connection, ledger: Ledger, since: dt.datetime, before: dt.datetime, most: int) -> Batch:
    """Delete at most `most` of the ledger's rows that were over between `since` and `before`, oldest first."""
    connection.execute(_IN_ORDER)
    return Batch(*connection.execute(ledger.delete, {"since": since, "before": before, "most": most}).one())
