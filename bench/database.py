"""The databases that are measured: real, durable, migrated, one for each condition, all on one server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Engine, make_url, text

from bench.interleave import Call
from db import migrate
from db.engine import autocommit, make_engine
from office_tasks.admission import ASSIGNMENT_ALLOWANCE, Answer, Outcome, admit, wake
from office_tasks.devstack import Postgres
from office_tasks.ids import new_id
from office_tasks.reasons import TASK_ASSIGNED

# What each measure is taken with, by the name of the condition.
SESSIONS: dict[str, dict[str, str]] = {"disk": {}, "synchronous_commit=off": {"synchronous_commit": "off"}}
AGENTS = 1_000

_SEED = (
    "INSERT INTO workspaces (id, name) VALUES ('office', 'office')",
    f"INSERT INTO agents (id, workspace_id, name) SELECT 'agent-' || i, 'office', i FROM generate_series(1,{AGENTS}) i",
    "CREATE TABLE bare (id uuid PRIMARY KEY, agent_profile_id text NOT NULL, payload jsonb NOT NULL)",
)
_BARE = text("INSERT INTO bare (id, agent_profile_id, payload) VALUES (:id, :agent, CAST(:payload AS jsonb))")


@dataclass
class Office:
    """One migrated database and what is called on it."""

    engine: Engine
    _made: int = 0

    def admit(self, actor_type: str) -> Answer:
        """Admit a keyed wake that no gate stops: another task each time, the next of the agents."""
        agent, task = self.next_agent(), str(new_id())
        answer = admit(
            self.engine,
            wake(
                wake_id=str(new_id()),
                agent_profile_id=agent,
                reason=TASK_ASSIGNED,
                payload={"task_id": task, "actor_type": actor_type, "actor_id": "somebody"},
                key=f"task_assigned:{task}:{agent}:1",
                producer="bench",
            ),
        )
        if answer.outcome is not Outcome.QUEUED:
            raise AssertionError(answer)
        return answer

    def user_wake(self) -> None:
        """P1: no allowance to count."""
        self.admit("user")

    def agent_wake(self) -> None:
        """P2: all six gates."""
        # The allowance is counted: this wake passes all six gates.
        if self.admit("agent").observed not in range(ASSIGNMENT_ALLOWANCE):
            raise AssertionError("gate 5 did not look")

    def bare_insert(self) -> None:
        """The yardstick: one row, one index, one commit, through the same engine."""
        payload = json.dumps({"task_id": str(new_id()), "actor_type": "user", "actor_id": "somebody"})
        values = {"id": new_id(), "agent": self.next_agent(), "payload": payload}
        with autocommit(self.engine) as connection:
            connection.execute(_BARE, values)

    def next_agent(self) -> str:
        """Return the next of the agents, round and round."""
        self._made += 1
        return f"agent-{self._made % AGENTS + 1}"

    def calls(self) -> dict[str, Call]:
        """What P1 and P2 compare."""
        return {"bare insert": self.bare_insert, "user wake": self.user_wake, "agent wake": self.agent_wake}

    def run(self, statement: str) -> None:
        """Run one statement that commits by itself."""
        with autocommit(self.engine) as connection:
            connection.execution_options(no_parameters=True).exec_driver_sql(statement)

    def analyze(self) -> None:
        """Let the planner know the tables, and begin with nothing left to write back."""
        self.run("VACUUM (ANALYZE)")
        self.run("CHECKPOINT")


@contextmanager
def office(server: Postgres, *, session: dict[str, str] | None = None) -> Iterator[Office]:
    """Make a database of `server`, migrated and seeded, and drop it afterwards."""
    name = f"bench_{new_id().hex}"
    with _administrator(server) as admin:
        admin.run(f"CREATE DATABASE {name}")
    engine = make_engine(_url(server, name), application_name="bench", session=session)
    try:
        migrate.upgrade(engine)
        made = Office(engine)
        for statement in _SEED:
            made.run(statement)
        yield made
    finally:
        engine.dispose()
        with _administrator(server) as admin:
            admin.run(f"DROP DATABASE {name}")


@contextmanager
def reconnected(made: Office, server: Postgres, session: dict[str, str]) -> Iterator[Office]:
    """Yield the same database through connections with other settings."""
    engine = make_engine(_url(server, made.engine.url.database or ""), application_name="bench", session=session)
    try:
        yield Office(engine)
    finally:
        engine.dispose()


@contextmanager
def _administrator(server: Postgres) -> Iterator[Office]:
    engine = make_engine(server.url, session={"statement_timeout": "0"})
    try:
        yield Office(engine)
    finally:
        engine.dispose()


def _url(server: Postgres, name: str) -> str:
    return make_url(server.url).set(database=name).render_as_string(hide_password=False)
