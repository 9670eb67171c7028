"""What an operator wants to know of an office first: one statement, bounded however much there is (OPS-1.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection, text

from db.jobs import LATEST
from db.states import WAKEABLE

# Of each kind of thing that is named, no more than this many are.
NAMED: Final = 20
# What was decided in the last hour is counted from its newest end, no further than this: a busy hour has millions.
COUNTED: Final = 50_000
STRUGGLING: Final = 5

_LAST_HOUR: Final = "clock.instant - interval '1 hour'"

# Each is a SELECT of rows, or of one row.
_ROWS: Final = {
    "live": f"""
        SELECT status, reason, count(*) AS number FROM (
            SELECT status, reason FROM runs WHERE status = 'queued' UNION ALL
            SELECT status, reason FROM runs WHERE status = 'claimed') live
        GROUP BY status, reason ORDER BY status DESC, number DESC, reason LIMIT 2 * {NAMED}""",
    "stale_claims": f"""
        SELECT id, agent_profile_id, task_id, lease_expires_at FROM clock, runs
        WHERE status = 'claimed' AND lease_expires_at <= clock.instant ORDER BY lease_expires_at LIMIT {NAMED}""",
    "struggling": f"""
        SELECT id, agent_profile_id, task_id, reason, attempts, last_error, next_attempt_at FROM wakes
        WHERE state = 'owed' AND attempts > {STRUGGLING} ORDER BY attempts DESC, requested_at LIMIT {NAMED}""",
    "poisoned": f"""
        SELECT id, task_name, poisoned_at FROM deliveries WHERE poisoned_at IS NOT NULL
        ORDER BY last_at DESC LIMIT {NAMED}""",
    "jobs": LATEST,
    "decided": f"""
        SELECT coalesce(outcome, 'superseded') AS outcome, refusal, count(*) AS wakes FROM (
            SELECT outcome, refusal FROM clock, wakes WHERE state <> 'owed' AND decided_at > {_LAST_HOUR}
            ORDER BY decided_at DESC LIMIT {COUNTED}) decided
        GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2""",
    "kept": f"""
        SELECT retained, count(*) AS sessions FROM (
            SELECT result #>> '{{session,retained}}' AS retained FROM clock, mutations
            WHERE settled_at IS NOT NULL AND settled_at > {_LAST_HOUR} ORDER BY settled_at DESC LIMIT {COUNTED}) settled
        WHERE retained IS NOT NULL GROUP BY retained ORDER BY retained""",
    "paused_workspaces": f"""
        SELECT workspace_id, paused_at, reason FROM pauses WHERE resumed_at IS NULL
        ORDER BY paused_at, workspace_id LIMIT {NAMED}""",
    "paused_agents": f"""
        SELECT id, workspace_id, status FROM agents WHERE status <> '{WAKEABLE}'
        ORDER BY workspace_id, id LIMIT {NAMED}""",
}
_ONE: Final = {
    "waiting_for_retry": """
        SELECT count(*) FROM clock, runs WHERE status = 'queued' AND scheduled_retry_at > clock.instant""",
    "stale": "SELECT count(*) FROM clock, runs WHERE status = 'claimed' AND lease_expires_at <= clock.instant",
    # As `db.pauses.HELD` has it, but of all owed wakes, and of few agents.
    "owed_by_pauses": """
        SELECT count(*) FROM wakes JOIN (
            SELECT agents.id FROM agents JOIN pauses USING (workspace_id) WHERE pauses.resumed_at IS NULL) held
        ON held.id = wakes.agent_profile_id WHERE wakes.state = 'owed'""",
    "unsettled": "SELECT count(*) FROM mutations WHERE settled_at IS NULL",
    "unsent": "SELECT count(*) FROM events WHERE sent_at IS NULL",
    "workspaces_paused": "SELECT count(*) FROM pauses WHERE resumed_at IS NULL",
    "agents_paused": f"SELECT count(*) FROM agents WHERE status <> '{WAKEABLE}'",
}

_ANSWERS: Final = ", ".join([
    *(f"(SELECT coalesce(jsonb_agg(to_jsonb(found)), '[]') FROM ({rows}) found) AS {name}"
      for name, rows in _ROWS.items()),
    *(f"({one}) AS {name}" for name, one in _ONE.items()),
])  # fmt: skip
_READ: Final = text(f"""
    WITH clock AS MATERIALIZED (SELECT office_now() AS instant) SELECT clock.instant AS at, {_ANSWERS} FROM clock""")


def read(connection: Connection) -> Mapping[str, Any]:
    """Read the office's state in one round trip; instants inside of rows are text, ISO 8601."""
    return dict(connection.execute(_READ).mappings().one())
