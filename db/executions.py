"""Running executions, and asking them to stop."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, text

# Only what was claimed before the change was committed: the run that the change itself caused goes on.
_INTERRUPT: Final = text("""
    UPDATE runs SET cancel_requested_at = office_now()
    WHERE task_id = :task_id AND (CAST(:agent_profile_id AS text) IS NULL OR agent_profile_id = :agent_profile_id)
      AND status = 'claimed' AND claimed_at <= :committed_at AND cancel_requested_at IS NULL
    RETURNING id""")


def interrupt(
    connection: Connection, task_id: str, agent_profile_id: str | None, committed_at: dt.datetime
) -> Sequence[uuid.UUID]:
    """Ask the running executions on the task to stop: the agent's, or everybody's; return the runs. Repeatable."""
    params = {"task_id": task_id, "agent_profile_id": agent_profile_id, "committed_at": committed_at}
    return connection.execute(_INTERRUPT, params).scalars().all()
