"""The deciding statement: a wake's row and its effect, as one, or not at all (ADM-2.5, ADM-10.2).

Every statement here is made of the same parts. `facts` is what was read, or what a gate made of it. `wake` is what is
being decided: values for a bare wake, the locked row for an owed one, so that of two deciders one finds nothing.
`effect` is what becomes of it: a run inserted, a run merged into, or a run merely named. `record` writes the decision,
from the effect: no effect, no record.

This is the only place that inserts into `runs` (ADM-1.1). Lock order: wake, then run.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import Connection, TextClause, text

from db.clock import INSTANT
from db.facts import Facts, facts_of, nothing_stands_in_the_way, select_facts
from db.lifecycle import WAKE
from db.models.runs import MERGEABLE
from db.statement import Statement

Effect = Literal["insert", "merge", "name", "find"]
Kind = Literal["bare", "owed"]
Columns = Mapping[str, Any]

_ASKED: Final = (
    "id", "reason", "agent_profile_id", "payload", "key", "generation", "keyless_cause", "keyless_detail",
    "actor_type", "actor_id", "producer",
)  # fmt: skip
_CASTS: Final = {"payload": "jsonb", "generation": "bigint"}
_GIVEN: Final = (
    "facts AS (SELECT CAST(:instant AS timestamptz) AS instant, CAST(:assignments AS integer) AS assignments)"
)

_WAKE: Final[Mapping[Kind, str]] = {
    "bare": "SELECT " + ", ".join(f"CAST(:{name} AS {_CASTS.get(name, 'text')}) AS {name}" for name in _ASKED)
    + " FROM facts WHERE {condition}",
    "owed": "SELECT id, agent_profile_id, reason, payload, key FROM wakes, facts "
    f"WHERE id = :id AND state IN ({WAKE['decide'].expected}) AND {{condition}} FOR UPDATE OF wakes",
}  # fmt: skip

_EFFECT: Final[Mapping[Effect, str]] = {
    "insert": """
        INSERT INTO runs (id, agent_profile_id, reason, payload, idempotency_key, requested_at)
        SELECT CAST(:run_id AS uuid), agent_profile_id, reason, payload, key, instant FROM wake, facts
        ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
        RETURNING id""",
    # The status is checked again under the row's lock: a claim that came first makes the merge miss (ADM-4.4).
    "merge": f"""
        UPDATE runs SET payload = wake.payload, coalesced_count = coalesced_count + 1
        FROM wake WHERE runs.id = CAST(:run_id AS uuid) AND {MERGEABLE}
        RETURNING runs.id""",
    "name": "SELECT CAST(:run_id AS uuid) AS id FROM wake",
    "find": "SELECT (SELECT runs.id FROM runs WHERE runs.idempotency_key = wake.key) AS id FROM wake",
}

_DECISION: Final = {
    "state": f"'{WAKE['decide'].target}'",
    "outcome": "CAST(:outcome AS text)",
    "gate": "CAST(:gate AS text)",
    "run_id": "effect.id",
    "observed": "facts.assignments",
    "refusal": "CAST(:refusal AS text)",
    "last_error": "CAST(:error AS text)",
    "decided_at": "facts.instant",
}

_RECORD: Final[Mapping[Kind, str]] = {
    "bare": f"""
        INSERT INTO wakes ({", ".join(_ASKED)}, requested_at, attempts, {", ".join(_DECISION)})
        SELECT {", ".join(f"wake.{name}" for name in _ASKED)}, facts.instant, 1, {", ".join(_DECISION.values())}
        FROM wake, facts, effect RETURNING run_id""",
    "owed": f"""
        UPDATE wakes SET {", ".join(f"{name} = {value}" for name, value in _DECISION.items())},
               attempts = attempts + 1, next_attempt_at = NULL
        FROM facts, effect WHERE wakes.id = :id RETURNING wakes.run_id""",
}


def _writing(kind: Kind, effect: Effect, condition: str) -> str:
    wake = _WAKE[kind].format(condition=condition)
    return f"wake AS ({wake}), effect AS ({_EFFECT[effect]}), record AS ({_RECORD[kind]})"


@cache
def _record(kind: Kind, effect: Effect) -> TextClause:
    return text(f"WITH {_GIVEN}, {_writing(kind, effect, 'true')} SELECT run_id FROM record")


# Each column costs an admission a few microseconds on its way: the facts come as one, and only when a gate must look.
_ANSWER: Final = """
    SELECT run_id, instant, assignments, CASE WHEN run_id IS NULL THEN to_jsonb(facts) END
    FROM facts LEFT JOIN record ON true"""


@cache
def _admit_if_clear(kind: Kind, questions: tuple[str, ...]) -> Statement:
    clear = nothing_stands_in_the_way(questions) + (" AND wake_state IS NULL" if kind == "bare" else "")
    uncounted = "" if "assignments" in questions else ", CAST(NULL AS integer) AS assignments"
    facts = f"facts AS MATERIALIZED (SELECT read.*{uncounted} FROM ({select_facts(questions)}) read)"
    return Statement(f"WITH {INSTANT}, {facts}, {_writing(kind, 'insert', clear)} {_ANSWER}")


def admit_if_clear(
    connection: Connection, kind: Kind, questions: tuple[str, ...], params: Columns
) -> tuple[Facts, uuid.UUID | None]:
    """Read what the gates need and, when every gate would let the wake pass, insert its run and record it at once.

    Args:
        connection: autocommit: the statement commits by itself.
        kind: whether the wake's row exists and is owed, or is to be inserted.
        questions: fields of `Facts`, `wake_state` among them.
        params: what was asked, what the questions name, `run_id`, and the `decision` of gate 6.

    Returns:
        What was read, of which an admitted wake keeps only the instant and the count; and the id of the run that was
        inserted, None when a gate has something to say, the key is taken, or the wake is decided already.

    Raises:
        IntegrityError: on `pk_wakes`: this bare wake was decided by another delivery of its message.
    """
    row = _admit_if_clear(kind, questions).run(connection, params).one()
    run_id, instant, assignments, seen = row
    facts = Facts(instant, assignments=assignments) if seen is None else facts_of(seen, instant)
    return facts, run_id


def record(connection: Connection, kind: Kind, effect: Effect, params: Columns) -> tuple[uuid.UUID | None] | None:
    """Record a decision together with its effect.

    Args:
        connection: autocommit: the statement commits by itself.
        kind: whether the wake's row exists and is owed, or is to be inserted.
        effect: `insert` a run, `merge` into the run `run_id`, `name` that run, or `find` the run that bears the key.
        params: what was asked (of an owed wake only `id`), and `outcome`, `gate`, `run_id`, `assignments`, `refusal`,
            `error`, `instant`.

    Returns:
        The run's id in a tuple, or None when nothing was written: the key is taken, the merge missed, or the wake is no
        longer owed.

    Raises:
        IntegrityError: on `pk_wakes`: this bare wake was decided by another delivery of its message.
    """
    row = connection.execute(_record(kind, effect), params).one_or_none()
    return None if row is None else (row.run_id,)


class Recorded(NamedTuple):
    """What stands on a wake's row."""

    state: str
    agent_profile_id: str
    reason: str
    key: str | None
    outcome: str | None
    gate: str | None
    run_id: uuid.UUID | None
    observed: int | None
    refusal: str | None
    last_error: str | None
    decided_at: dt.datetime | None


_RECORDED: Final = text(f"SELECT {', '.join(Recorded._fields)} FROM wakes WHERE id = :id")


def recorded(connection: Connection, wake_id: str) -> Recorded | None:
    """Return what stands on the wake's row, or None when there is no such wake."""
    row = connection.execute(_RECORDED, {"id": wake_id}).one_or_none()
    return None if row is None else Recorded(*row)
