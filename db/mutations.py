"""Mutations: recorded with what they owe and what they say, settled once (PRO-6.1)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, RowMapping, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB

# One statement: the mutation, the wakes it owes and the events it causes stand or fall together. The wakes and events
# arrive as JSON arrays, so that their number changes no statement.
_RECORD: Final = text("""
    WITH mutation AS (
        INSERT INTO mutations (id, kind, task_id, previous_runner_id, generation, actor_type, actor_id, facts,
                               committed_at)
        VALUES (:id, :kind, :task_id, :previous_runner_id, :generation, :actor_type, :actor_id, :facts, :instant)
        RETURNING id),
    owed AS (
        INSERT INTO wakes (id, mutation_id, reason, agent_profile_id, payload, key, generation, keyless_cause,
                           keyless_detail, actor_type, actor_id, producer, requested_at, state)
        SELECT w.id, mutation.id, w.reason, w.agent_profile_id, w.payload, w.key, w.generation, w.keyless_cause,
               w.keyless_detail, w.actor_type, w.actor_id, w.producer, :instant, 'owed'
        FROM mutation, jsonb_populate_recordset(CAST(NULL AS wakes), :wakes) w)
    INSERT INTO events (mutation_id, task_id, type, changed, created_at)
    SELECT mutation.id, e.task_id, e.type, e.changed, :instant
    FROM mutation, jsonb_populate_recordset(CAST(NULL AS events), :events) e""").bindparams(
    bindparam("facts", type_=JSONB), bindparam("wakes", type_=JSONB), bindparam("events", type_=JSONB)
)

_FIND: Final = text("SELECT facts, result FROM mutations WHERE id = :id")
_SETTLE: Final = text("""
    UPDATE mutations SET settled_at = coalesce(CAST(:instant AS timestamptz), office_now()), result = :result
    WHERE id = :id AND settled_at IS NULL""").bindparams(bindparam("result", type_=JSONB))
_WAKES: Final = text("SELECT * FROM wakes WHERE mutation_id = :id ORDER BY length(id), id")
_POSTPONE: Final = text("""
    UPDATE wakes SET last_error = :error, attempts = attempts + 1,
           next_attempt_at = office_now() + least(interval '5 s' * power(2, least(attempts, 20)), interval '10 min')
    WHERE id = :id AND state = 'owed'""")


class Recorded(NamedTuple):
    """A mutation that committed: the start of its result, and the whole of it once it is settled."""

    facts: Any
    result: Any | None


def record(
    connection: Connection,
    columns: Mapping[str, Any],
    wakes: Sequence[Mapping[str, Any]],
    events: Sequence[Mapping[str, Any]],
) -> None:
    """Write a mutation with the wakes it owes and its events, inside the mutation's own transaction.

    Raises:
        IntegrityError: on `pk_mutations`: this message has committed its mutation before.
    """
    connection.execute(_RECORD, {**columns, "wakes": list(wakes), "events": list(events)})


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


def postpone(connection: Connection, wake_id: str, error: str) -> None:
    """Leave a wake owed after an attempt that failed; the next comes later each time (5 s to 10 min)."""
    connection.execute(_POSTPONE, {"id": wake_id, "error": error})
