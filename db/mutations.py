"""Mutations: recorded with what they owe and what they say, settled once (PRO-6.1)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, RowMapping, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB

from db.clock import AT

# One statement: the mutation, the wakes it owes and the events it causes stand or fall together. The wakes and events
# arrive as JSON arrays, so that their number changes no statement.
_RECORD: Final = text(f"""
    WITH mutation AS (
        INSERT INTO mutations (id, kind, task_id, previous_runner_id, generation, actor_type, actor_id, facts,
                               committed_at)
        VALUES (:id, :kind, :task_id, :previous_runner_id, :generation, :actor_type, :actor_id, :facts, {AT})
        RETURNING id, committed_at),
    owed AS (
        INSERT INTO wakes (id, mutation_id, reason, agent_profile_id, payload, key, generation, keyless_cause,
                           keyless_detail, actor_type, actor_id, producer, requested_at, state)
        SELECT w.id, mutation.id, w.reason, w.agent_profile_id, w.payload, w.key, w.generation, w.keyless_cause,
               w.keyless_detail, w.actor_type, w.actor_id, w.producer, mutation.committed_at, 'owed'
        FROM mutation, jsonb_populate_recordset(CAST(NULL AS wakes), :wakes) w),
    said AS (
        INSERT INTO events (mutation_id, task_id, type, changed, created_at)
        SELECT mutation.id, e.task_id, e.type, e.changed, mutation.committed_at
        FROM mutation, jsonb_populate_recordset(CAST(NULL AS events), :events) e)
    SELECT committed_at FROM mutation""").bindparams(
    bindparam("facts", type_=JSONB), bindparam("wakes", type_=JSONB), bindparam("events", type_=JSONB)
)

_FIND: Final = text("SELECT facts, committed_at, result FROM mutations WHERE id = :id")
_SETTLE: Final = text(f"""
    UPDATE mutations SET settled_at = {AT}, result = :result
    WHERE id = :id AND settled_at IS NULL""").bindparams(bindparam("result", type_=JSONB))
_WAKES: Final = text("SELECT * FROM wakes WHERE mutation_id = :id ORDER BY length(id), id")


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
    params = {**columns, "wakes": list(wakes), "events": list(events)}
    committed_at: dt.datetime = connection.execute(_RECORD, params).scalar_one()
    return committed_at


def find(connection: Connection, mutation_id: str) -> Recorded | None:
    """Return the mutation that this message committed, or None when it committed none."""
    row = connection.execute(_FIND, {"id": mutation_id}).one_or_none()
    return None if row is None else Recorded(*row)


def settle(connection: Connection, mutation_id: str, result: Any, instant: dt.datetime | None) -> None:  # noqa: ANN401
    """Store the result, once: the first to settle wins."""
    connection.execute(_SETTLE, {"id": mutation_id, "result": result, "instant": instant})


def wakes_of(connection: Connection, mutation_id: str) -> Sequence[RowMapping]:
    """Return the wakes that the mutation owes or owed, in their fixed order."""
    return connection.execute(_WAKES, {"id": mutation_id}).mappings().all()
