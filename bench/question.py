"""P9: whether an agent still holds a capacity, beside two reads by primary key."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sqlalchemy import Engine

from bench.database import AGENTS, office, reconnected
from bench.interleave import interleave
from bench.result import Result
from bench.scale import Scale
from db import capacity
from db.engine import autocommit
from db.statement import Statement
from office_tasks.devstack import Postgres

_FILL = (
    """INSERT INTO steps (id, workspace_id, workflow_id, name, primary_agent_id)
       VALUES ('s', 'office', 'f', '', 'agent-1')""",
    """INSERT INTO tasks (id, workspace_id, step_id, title)
       SELECT 't-' || n, 'office', 's', '' FROM generate_series(1, {tasks}) n""",
    """INSERT INTO seats (id, task_id, step_id, role, agent_profile_id)
       SELECT gen_random_uuid(), 't-' || n, 's', role, 'agent-' || (n * 7 + length(role)) % {agents} + 1
       FROM generate_series(1, {tasks}) n, unnest(ARRAY['runner', 'reviewer', 'approver']) role""",
)

_TASK = Statement("SELECT status FROM tasks WHERE id = :id")
_AGENT = Statement("SELECT status FROM agents WHERE id = :id")


def ratio(server: Postgres, scale: Scale) -> Iterator[Result]:
    """P9, of an agent that holds nothing: everything has to be looked at."""
    with office(server) as made:
        for statement in _FILL:
            made.run(statement.format(tasks=scale.rows_before, agents=AGENTS))
        made.analyze()
        with reconnected(made, server, {}) as seen:
            calls = {
                "two reads": partial(_read_twice, seen.engine),
                "question": partial(_ask, seen.engine),
            }
            samples = interleave(calls, rounds=scale.rounds, calls_per_round=scale.calls)
        yield Result.of("P9", "one round trip", samples.ratio("question", "two reads"), 1.5)


def _ask(engine: Engine) -> None:
    with autocommit(engine) as connection:
        if capacity.retained(connection, "t-7", "agent-2") is not None:
            raise AssertionError("the agent was to hold nothing")


def _read_twice(engine: Engine) -> None:
    with autocommit(engine) as connection:
        _TASK.run(connection, {"id": "t-7"}).scalar_one()
        _AGENT.run(connection, {"id": "agent-2"}).scalar_one()
