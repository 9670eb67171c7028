"""A workspace's kill switch."""

from __future__ import annotations

import datetime as dt
from typing import Final

from sqlalchemy import Connection, text

from db.clock import AT

# Of a row `agents`: whether its workspace is paused.
PAUSED: Final = """
    EXISTS (SELECT FROM pauses WHERE pauses.workspace_id = agents.workspace_id AND pauses.resumed_at IS NULL)"""
# Of a row `wakes` that is owed: whether that is on purpose, until its workspace is resumed. A scalar subquery is asked
# of the row at hand: no join that a plan could turn around.
HELD: Final = f"(SELECT {PAUSED} FROM agents WHERE agents.id = wakes.agent_profile_id) IS TRUE"

# The workspace's row is locked, so that pausing and resuming at once have an order.
_LOCK: Final = text("SELECT 1 FROM workspaces WHERE id = :id FOR UPDATE")
_PAUSE: Final = text(f"""
    INSERT INTO pauses (workspace_id, reason, paused_at) VALUES (:id, :reason, {AT})
    ON CONFLICT (workspace_id) WHERE resumed_at IS NULL DO NOTHING""")
_RESUME: Final = text(f"""
    UPDATE pauses SET resumed_at = greatest({AT}, paused_at) WHERE workspace_id = :id AND resumed_at IS NULL""")


def lock_workspace(connection: Connection, workspace_id: str) -> bool:
    """Lock the workspace's row until the transaction ends; False when there is none."""
    return connection.execute(_LOCK, {"id": workspace_id}).scalar_one_or_none() is not None


def pause(connection: Connection, workspace_id: str, reason: str, instant: dt.datetime | None) -> bool:
    """Pause the workspace; False when it was paused already."""
    return connection.execute(_PAUSE, {"id": workspace_id, "reason": reason, "instant": instant}).rowcount == 1


def resume(connection: Connection, workspace_id: str, instant: dt.datetime | None) -> bool:
    """Resume the workspace; False when it was not paused."""
    return connection.execute(_RESUME, {"id": workspace_id, "instant": instant}).rowcount == 1
