"""An agent that goes: its profile, and what it was to do or is doing. Its seats stay (SES-2.4)."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from db.clock import AT
from db.executions import CANCELLED
from db.lifecycle import CLAIMED, QUEUED
from db.statement import Statement

# Waits for a claim that is under way, and none follows: what it claimed is found below.
_AGENT: Final = Statement("DELETE FROM agents WHERE id = :agent_profile_id RETURNING true")

_QUEUED: Final = Statement(f"""
    WITH cancelled AS (
        UPDATE runs SET {CANCELLED}, cancel_reason = :reason
        WHERE agent_profile_id = :agent_profile_id AND {QUEUED} RETURNING id)
    SELECT CAST(id AS text) FROM cancelled ORDER BY id""")

_RUNNING: Final = Statement(f"""
    WITH interrupted AS (
        UPDATE runs SET cancel_requested_at = {AT}, cancel_reason = :reason
        WHERE agent_profile_id = :agent_profile_id AND {CLAIMED} AND cancel_requested_at IS NULL RETURNING id)
    SELECT CAST(id AS text) FROM interrupted ORDER BY id""")


class Deleted(NamedTuple):
    """What the agent's going ended: runs that were queued, and executions that are asked to stop."""

    cancelled: list[str]
    interrupted: list[str]


def delete_agent(
    connection: Connection, agent_profile_id: str, reason: str, instant: dt.datetime | None
) -> Deleted | None:
    """Delete an agent, cancel its queued runs and ask its executions to stop; None when there is no such agent."""
    params: dict[str, Any] = {"agent_profile_id": agent_profile_id, "reason": reason, "instant": instant}
    if _AGENT.run(connection, params).one_or_none() is None:
        return None
    return Deleted(
        list(_QUEUED.run(connection, params).scalars()),
        list(_RUNNING.run(connection, params).scalars()),
    )


# What an admission queued that had seen the agent just before it went. Each next waiting agent by one descent of the
# index.
_ORPHANS: Final = Statement(f"""
    WITH RECURSIVE waiting (id) AS (
        (SELECT agent_profile_id FROM runs WHERE {QUEUED} ORDER BY agent_profile_id LIMIT 1)
        UNION ALL
        SELECT (SELECT agent_profile_id FROM runs WHERE {QUEUED} AND agent_profile_id > waiting.id
                ORDER BY agent_profile_id LIMIT 1)
        FROM waiting WHERE waiting.id IS NOT NULL),
    orphans AS (
        SELECT runs.id FROM waiting JOIN runs ON runs.agent_profile_id = waiting.id
        WHERE runs.{QUEUED} AND (SELECT true FROM agents WHERE agents.id = waiting.id) IS NULL
        LIMIT :most FOR UPDATE OF runs SKIP LOCKED),
    cancelled AS (
        UPDATE runs SET {CANCELLED}, cancel_reason = :reason
        WHERE id IN (SELECT id FROM orphans) AND {QUEUED} RETURNING id)
    SELECT count(*) FROM cancelled""")


def cancel_orphans(connection: Connection, reason: str, most: int) -> int:
    """Cancel at most `most` queued runs whose agent is gone; return how many."""
    return int(_ORPHANS.run(connection, {"reason": reason, "most": most, "instant": None}).scalar_one())
