"""What the gates read: one question each, and all of them in one statement.

Each fragment answers one gate's question and is written once. `read_all` asks the ones a wake needs in one round trip;
`read_one` asks a single one, for when that statement failed and each gate must fail in its own direction (ADM-2.5).
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, TextClause, text

from db.clock import INSTANT
from db.models.runs import AGENT_ASSIGNMENT, MERGEABLE
from db.pauses import PAUSED
from db.states import WAKEABLE

Params = Mapping[str, Any]

# A wake whose key begins like this neither merges nor is merged into (ADM-4.1).
NEVER_MERGED: Final = "task_comment:"

_FRAGMENTS: Final[Mapping[str, str]] = {
    "agent_status": "SELECT status FROM agents WHERE id = :agent_profile_id",
    # NULL, which is not false, when the agent has no workspace or its row is missing (ADM-2.6).
    "paused": f"""
        SELECT {PAUSED}
        FROM agents JOIN workspaces ON workspaces.id = agents.workspace_id
        WHERE agents.id = :agent_profile_id""",
    "duplicate_of": """
        SELECT id FROM runs
        WHERE idempotency_key = :key AND requested_at > instant - CAST(:duplicate_lookback AS interval)""",
    "merge_into": f"""
        SELECT id FROM runs
        WHERE agent_profile_id = :agent_profile_id AND reason = :reason AND task_scope = :task_scope AND {MERGEABLE}
          AND requested_at > instant - CAST(:coalesce_window AS interval)
          AND (idempotency_key IS NULL OR NOT starts_with(idempotency_key, '{NEVER_MERGED}'))
        ORDER BY requested_at DESC, id DESC LIMIT 1""",
    "assignments": f"""
        SELECT count(*) FROM runs
        WHERE task_id = :task_id AND {AGENT_ASSIGNMENT}
          AND requested_at > instant - CAST(:allowance_window AS interval) AND requested_at <= instant""",
    "workspace_id": "SELECT workspace_id FROM agents WHERE id = :agent_profile_id",
    "wake_state": "SELECT state FROM wakes WHERE id = :wake_id",
}


# What lets a wake through, in SQL, so that the common wake needs one round trip. The gates decide everything else; that
# the two agree on every reading is a test (ADM-2.1).
_PASSES: Final[Mapping[str, str]] = {
    "agent_status": f"agent_status = '{WAKEABLE}'",
    "paused": "NOT paused",
    "duplicate_of": "duplicate_of IS NULL",
    "merge_into": "merge_into IS NULL",
    "assignments": "assignments < CAST(:allowance AS integer)",
}


class Facts(NamedTuple):
    """What was read for one wake. A question that was not asked is None, as is one without an answer."""

    instant: dt.datetime
    agent_status: str | None = None
    paused: bool | None = None
    duplicate_of: uuid.UUID | None = None
    merge_into: uuid.UUID | None = None
    assignments: int | None = None
    wake_state: str | None = None
    workspace_id: str | None = None


def facts_of(seen: Mapping[str, Any], instant: dt.datetime) -> Facts:
    """Return what was read as one JSON object at `instant`."""
    ids = {name: uuid.UUID(seen[name]) for name in ("duplicate_of", "merge_into") if seen.get(name)}
    return Facts(**{**seen, **ids, "instant": instant})


def select_facts(questions: tuple[str, ...]) -> str:
    """Return the SELECT that answers `questions` at the instant of `clock`."""
    answers = "".join(f", ({_FRAGMENTS[question]}) AS {question}" for question in questions)
    return f"SELECT instant{answers} FROM clock"


def nothing_stands_in_the_way(questions: tuple[str, ...]) -> str:
    """Return the condition under which every gate that asked one of `questions` lets the wake pass."""
    return " AND ".join(_PASSES[question] for question in questions if question in _PASSES)


@cache
def _statement(questions: tuple[str, ...]) -> TextClause:
    return text(f"WITH {INSTANT} {select_facts(questions)}")


def read(connection: Connection, questions: tuple[str, ...], params: Params) -> Facts:
    """Answer `questions`, in one round trip, at one instant, and write nothing.

    Args:
        connection: autocommit, READ COMMITTED.
        questions: fields of `Facts`.
        params: what the questions name; `instant` None asks Postgres for it.
    """
    row = connection.execute(_statement(questions), params).one()
    return Facts(**row._mapping)  # noqa: SLF001 - the documented name-to-value view of a row
