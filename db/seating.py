"""Who sits down, stands up, and takes whose place on a task."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any, Final

from sqlalchemy import Connection

from db.clock import AT
from db.lifecycle import QUEUED, RUN
from db.statement import Statement

# At the step where the task stands: a seat that it left behind is not this one.
_HERE: Final = """
    seats.task_id = :task_id AND seats.step_id = :step_id AND seats.role = :role
    AND seats.agent_profile_id = :agent_profile_id"""

_SIT: Final = Statement(f"""
    INSERT INTO seats (id, task_id, step_id, role, agent_profile_id, created_at)
    VALUES (CAST(:id AS uuid), :task_id, :step_id, :role, :agent_profile_id, {AT})
    ON CONFLICT (task_id, step_id, role, agent_profile_id) DO NOTHING RETURNING true""")

_STAND: Final = Statement(f"DELETE FROM seats WHERE {_HERE} RETURNING true")

# Reviews that were asked of somebody in a role that is no longer theirs: with other roles left they are for those.
_WITHDRAW: Final = Statement(f"""
    WITH asked AS (
        SELECT id, jsonb_path_query_array(payload -> 'roles', '$[*] ? (@ != $role)', jsonb_build_object('role',
                   CAST(:role AS text))) AS roles
        FROM runs
        WHERE task_id = :task_id AND agent_profile_id = :agent_profile_id AND {QUEUED}
          AND reason = 'task_review_requested' AND payload -> 'roles' @> jsonb_build_array(CAST(:role AS text))
        FOR UPDATE)
    UPDATE runs SET payload = jsonb_set(payload, '{{roles}}', asked.roles),
           status = CASE asked.roles WHEN '[]' THEN '{RUN["cancel"].target}' ELSE runs.status END,
           cancel_reason = CASE asked.roles WHEN '[]' THEN CAST(:reason AS text) END,
           finished_at = CASE asked.roles WHEN '[]' THEN {AT} END,
           scheduled_retry_at = CASE asked.roles WHEN '[]' THEN NULL ELSE scheduled_retry_at END
    FROM asked WHERE runs.id = asked.id AND runs.{QUEUED}
    RETURNING CAST(runs.id AS text), runs.status""")


def sit(connection: Connection, seat: dict[str, Any], seat_id: uuid.UUID, instant: dt.datetime | None) -> bool:
    """Give an agent a seat; False when it sits there already.

    Args:
        connection: in a transaction that holds the task's row.
        seat: `task_id`, `step_id` (the task's present one), `role` and `agent_profile_id`.
        seat_id: the id of the new seat.
        instant: None for the office's present.
    """
    return _SIT.run(connection, {**seat, "id": seat_id, "instant": instant}).one_or_none() is not None


def stand(connection: Connection, seat: dict[str, Any]) -> bool:
    """Take an agent's seat away; False when it does not sit there (a template seat is its step's, not the task's)."""
    return _STAND.run(connection, seat).one_or_none() is not None


def withdraw_reviews(
    connection: Connection, seat: dict[str, Any], reason: str, instant: dt.datetime | None
) -> dict[str, str]:
    """Take a role off the queued reviews that were asked of the agent on the task; one with no role left is cancelled.

    Returns:
        The runs that changed, and their status now.
    """
    rows = _WITHDRAW.run(connection, {**seat, "reason": reason, "instant": instant}).all()
    return dict(map(tuple, rows))
