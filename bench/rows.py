"""Years of runs and wakes, made by Postgres itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bench.database import AGENTS, Office
from db.engine import autocommit

QUEUED = 200_000

# The queued ones are the newest; nearly all rows lie outside every window, as they do in an office.
_RUNS = """
INSERT INTO runs (id, agent_profile_id, reason, payload, idempotency_key, requested_at, status, finished_at)
SELECT uuidv7(at - now()), 'agent-' || n % {agents} + 1,
       CASE n % 4 WHEN 0 THEN 'task_comment' ELSE 'task_assigned' END,
       jsonb_build_object(
           'task_id', task, 'actor_type', CASE n % 3 WHEN 0 THEN 'user' ELSE 'agent' END, 'actor_id', 'x'),
       'task_assigned:' || task || ':agent-' || n % {agents} + 1 || ':' || n,
       at, CASE WHEN n > {queued} THEN 'finished' ELSE 'queued' END, CASE WHEN n > {queued} THEN at END
FROM (SELECT n, md5((n / 5)::text)::uuid::text AS task, now() - n * interval '15 seconds' AS at
      FROM generate_series(1, {size}) n ORDER BY n DESC) made"""

_WAKES = """
INSERT INTO wakes (id, reason, agent_profile_id, payload, key, actor_type, actor_id, producer, requested_at,
                   state, outcome, gate, run_id, decided_at, attempts)
SELECT uuidv7(requested_at - now())::text, reason, agent_profile_id, payload, idempotency_key, actor_type, 'x', 'bench',
       requested_at, 'decided', 'queued', 'insert', id, requested_at, 1
FROM runs ORDER BY requested_at"""


_INDEXES = """
SELECT indexname, indexdef FROM pg_indexes
WHERE tablename = ANY(%(tables)s) AND indexname <> ALL(SELECT 'pk_' || unnest(%(tables)s))"""


def fill(made: Office, size: int) -> None:
    """Put `size` rows into each of `runs` and `wakes`, of which `QUEUED`, or a fifth when that is fewer, are queued."""
    made.run("SET statement_timeout = 0")
    made.run("SET synchronous_commit = off")
    with indexes_rebuilt(made, "runs", "wakes"):
        made.run(_RUNS.format(size=size, queued=min(QUEUED, size // 5), agents=AGENTS))
        made.run(_WAKES)


@contextmanager
def indexes_rebuilt(made: Office, *tables: str) -> Iterator[None]:
    """Build the indexes of the tables afterwards, sorted: row by row takes several times as long."""
    with autocommit(made.engine) as connection:
        indexes = connection.exec_driver_sql(_INDEXES, {"tables": list(tables)}).all()
    for name, _ in indexes:
        made.run(f"DROP INDEX {name}")
    yield
    for _, definition in indexes:
        made.run(definition)
