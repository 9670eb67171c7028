"""P7: one tick of the sweep with five candidates, in a large office and in a small one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from sqlalchemy import text

from bench.database import AGENTS, SESSIONS, Office, office, reconnected
from bench.interleave import interleave
from bench.result import Result
from bench.rows import indexes_rebuilt
from bench.scale import Scale
from db.engine import autocommit
from office_tasks.devstack import Postgres
from office_tasks.ids import new_id
from recovery.sweep import CAP, sweep_once

RUNS_A_TASK = 5
# Younger than a day and still `todo`: they were started, and the sweep must see that. A large office has no more of
# them than a small one: what differs is the history.
RECENT = 100
# An older task in fifty was never closed.
LEFT_TODO = 50

_FURNISH = (
    "UPDATE workspaces SET office_workflow_id = 'flow' WHERE id = 'office'",
    """
    INSERT INTO steps (id, workspace_id, workflow_id, name, auto_start)
    VALUES ('step', 'office', 'flow', 'step', true)""",
)
_TASKS = """
INSERT INTO tasks (id, workspace_id, workflow_id, step_id, title, status, assignment_generation, created_at, updated_at)
SELECT 'task-' || n, 'office', 'flow', 'step', 'a task',
       CASE WHEN n <= {recent} OR n % {left_todo} = 0 THEN 'todo' ELSE 'done' END, 1, at, at
FROM (SELECT n, CASE WHEN n <= {recent} THEN now() - n * interval '1 minute'
                     ELSE now() - interval '25 hours' - n * interval '30 seconds' END AS at
      FROM generate_series({tasks}, 1, -1) n) made"""
_SEATS = """
INSERT INTO seats (id, task_id, step_id, role, agent_profile_id)
SELECT uuidv4(), id, 'step', 'runner', 'agent-' || 1 + abs(hashtext(id) % {agents}) FROM tasks
WHERE id LIKE 'task-%'"""
_RUNS = """
INSERT INTO runs (id, agent_profile_id, reason, payload, requested_at, status, finished_at)
SELECT uuidv7(at - now()), 'agent-' || n % {agents} + 1, CASE n % 5 WHEN 0 THEN 'task_assigned' ELSE 'task_comment' END,
       jsonb_build_object('task_id', 'task-' || n % {tasks} + 1), at, 'finished', at
FROM (SELECT n, now() - n * interval '6 seconds' AS at FROM generate_series({runs}, 1, -1) n) made"""
# Those of the last tick are closed, so that there are five, and no more.
_CANDIDATES = text("""
    WITH closed AS (UPDATE tasks SET status = 'done' WHERE id = ANY(:last)),
    made AS (
        INSERT INTO tasks (id, workspace_id, workflow_id, step_id, title, assignment_generation)
        SELECT id, 'office', 'flow', 'step', 'never started', 1 FROM unnest(CAST(:next AS text[])) id RETURNING id)
    INSERT INTO seats (id, task_id, step_id, role, agent_profile_id)
    SELECT uuidv4(), id, 'step', 'runner', 'agent-' || row_number() OVER () FROM made""")
_SCANS = "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname IN ('tasks', 'runs') ORDER BY 1"


@dataclass
class Ticks:
    """Ticks of one office; before each there are five tasks that never started."""

    made: Office
    _last: list[str] = field(default_factory=list)

    def before(self) -> None:
        """Make the candidates."""
        new = [str(new_id()) for _ in range(CAP)]
        with autocommit(self.made.engine) as connection:
            connection.execute(_CANDIDATES, {"last": self._last, "next": new})
        self._last = new

    def __call__(self) -> None:
        """Sweep once."""
        done = sweep_once(self.made.engine, str(new_id()))
        if (done["candidates"], done["dispatched"]) != (CAP, CAP):
            raise AssertionError(done)

    def close(self) -> None:
        """Leave no candidate to others."""
        with autocommit(self.made.engine) as connection:
            connection.execute(_CANDIDATES, {"last": self._last, "next": []})

    def scans(self) -> dict[str, int]:
        """Return how often each table was read from end to end."""
        with autocommit(self.made.engine) as connection:
            return {row.relname: row.seq_scan for row in connection.exec_driver_sql(_SCANS)}


def ticks(server: Postgres, scale: Scale) -> Iterator[Result]:
    """P7: the same tick over few tasks and over many, each on candidates that were never tried."""
    with ExitStack() as opened:
        made = {size: opened.enter_context(office(server)) for size in scale.tasks}
        for size, each in made.items():
            fill(each, size)
        for condition, session in SESSIONS.items():
            with ExitStack() as stack:
                seen = {size: stack.enter_context(reconnected(each, server, session)) for size, each in made.items()}
                calls = {f"{size:,} tasks": Ticks(each) for size, each in seen.items()}
                yield from _compare(condition, calls, scale)


def _compare(condition: str, calls: dict[str, Ticks], scale: Scale) -> Iterator[Result]:
    scans = {name: each.scans() for name, each in calls.items()}
    samples = interleave(calls, rounds=scale.rounds, calls_per_round=scale.ticks)
    smallest, *larger = calls
    for name in larger:
        result = Result.of("P7", condition, samples.ratio(name, smallest), 2.0)
        more = {table: count - scans[name][table] for table, count in calls[name].scans().items()}
        yield replace(result, detail={**result.detail, "sequential scans": more})
    for each in calls.values():
        each.close()


def fill(made: Office, tasks: int) -> None:
    """Put `tasks` tasks into the office, of which none is a candidate, with five finished runs each."""
    made.run("SET statement_timeout = 0")
    made.run("SET synchronous_commit = off")
    sizes = {"tasks": tasks, "runs": tasks * RUNS_A_TASK, "recent": RECENT, "left_todo": LEFT_TODO, "agents": AGENTS}
    for statement in (*_FURNISH, _TASKS, _SEATS):
        made.run(statement.format(**sizes))
    with indexes_rebuilt(made, "runs"):
        made.run(_RUNS.format(**sizes))
    made.analyze()
