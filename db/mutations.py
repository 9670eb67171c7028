"""Mutations: recorded with what they owe and what they say, settled once (PRO-6.1)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, RowMapping

from db.clock import AT
from db.executions import Interrupt, Scope, interrupting, whom
from db.lifecycle import WAKE
from db.statement import Statement, as_json

_OWE: Final = f"""
        INSERT INTO wakes (id, mutation_id, reason, agent_profile_id, payload, key, generation, keyless_cause,
                           keyless_detail, actor_type, actor_id, producer, requested_at, state)
        SELECT w.id, {{id}}, w.reason, w.agent_profile_id, w.payload, w.key, w.generation, w.keyless_cause,
               w.keyless_detail, w.actor_type, w.actor_id, w.producer, {{at}}, {WAKE["decide"].expected}
        FROM {{from_}} jsonb_populate_recordset(CAST(NULL AS wakes), CAST(:wakes AS jsonb)) w"""

# One statement: the mutation, the wakes it owes and the events it causes stand or fall together. The wakes and events
# arrive as JSON arrays, so that their number changes no statement.
_RECORD: Final = Statement(f"""
    WITH mutation AS (
        INSERT INTO mutations (id, kind, task_id, previous_runner_id, generation, actor_type, actor_id, facts,
                               committed_at)
        VALUES (:id, :kind, :task_id, :previous_runner_id, :generation, :actor_type, :actor_id,
                CAST(:facts AS jsonb), {AT})
        RETURNING id, committed_at),
    owed AS (
        {_OWE.format(from_="mutation,", id="mutation.id", at="mutation.committed_at")}),
    said AS (
        INSERT INTO events (mutation_id, task_id, type, changed, created_at)
        SELECT mutation.id, e.task_id, e.type, e.changed, mutation.committed_at
        FROM mutation, jsonb_populate_recordset(CAST(NULL AS events), CAST(:events AS jsonb)) e)
    SELECT committed_at FROM mutation""")

_OWE_ALONE: Final = Statement(_OWE.format(from_="", id=":id", at=AT))
_FIND: Final = Statement("SELECT facts, committed_at, result FROM mutations WHERE id = :id")


def _settling(scope: Scope) -> Statement:
    # The interrupt goes along, to spare a round trip: it is the one other thing that a settling writes.
    return Statement(f"""
        WITH interrupted AS ({interrupting(scope)}),
        said AS (SELECT CASE WHEN CAST(:{scope}_id AS text) IS NOT NULL THEN
            jsonb_build_object('interrupted', ARRAY(SELECT CAST(id AS text) FROM interrupted ORDER BY id)) END AS more)
        UPDATE mutations SET settled_at = {AT}, result = CAST(:result AS jsonb) || coalesce(said.more, '{{}}')
        FROM said WHERE id = :id AND settled_at IS NULL
        RETURNING ARRAY(SELECT CAST(id AS text) FROM interrupted ORDER BY id)""")


_SETTLE: Final[Mapping[Scope, Statement]] = {"task": _settling("task"), "workspace": _settling("workspace")}
_WAKES: Final = Statement("SELECT * FROM wakes WHERE mutation_id = :id ORDER BY length(id), id")


class Recorded(NamedTuple):
    """A mutation that committed: what its after-commit part needs, and its result once it is settled."""

    facts: Any
    committed_at: dt.datetime
    result: Any | None


def record(
    connection: Connection,
    columns: Mapping[str, Any],
    wakes: Sequence[Mapping[str, Any]],
    events: Sequence[Mapping[str, Any]],
) -> dt.datetime:
    """Write a mutation with the wakes it owes and its events, in the mutation's own transaction; return its instant.

    Raises:
        IntegrityError: on `pk_mutations`: this message has committed its mutation before.
    """
    params = {
        **columns,
        "facts": as_json(columns["facts"]),
        "wakes": as_json(list(wakes)),
        "events": as_json(list(events)),
    }
    committed_at: dt.datetime = _RECORD.run(connection, params).scalar_one()
    return committed_at


def owe_one(
    connection: Connection, mutation_id: str, wake: Mapping[str, Any], instant: dt.datetime | None = None
) -> None:
    """Write one wake that a mutation of the same transaction owes: one by one, so that one may fail alone."""
    _OWE_ALONE.run(connection, {"id": mutation_id, "wakes": as_json([wake]), "instant": instant})


def find(connection: Connection, mutation_id: str) -> Recorded | None:
    """Return the mutation that this message committed, or None when it committed none."""
    row = _FIND.run(connection, {"id": mutation_id}).one_or_none()
    return None if row is None else Recorded(*row)


def settle(
    connection: Connection,
    mutation_id: str,
    result: Any,  # noqa: ANN401 - any JSON object
    interrupt: Interrupt | None,
    instant: dt.datetime | None,
) -> list[str]:
    """Store the result, once: the first to settle wins. Ask the executions that the change displaced to stop.

    Returns:
        The runs that were asked to stop, which the stored result names as well.
    """
    params = {"id": mutation_id, "result": as_json(result), "instant": instant, **whom(interrupt)}
    settling = _SETTLE[interrupt.scope if interrupt else "task"]
    found: list[str] | None = settling.run(connection, params).scalar_one_or_none()
    return found or []


def wakes_of(connection: Connection, mutation_id: str) -> Sequence[RowMapping]:
    """Return the wakes that the mutation owes or owed, in their fixed order."""
    return _WAKES.run(connection, {"id": mutation_id}).mappings().all()
