"""Words that several sentences share."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from db.states import WAKEABLE

Row = Mapping[str, Any]


def at(instant: dt.datetime) -> str:
    """Return an instant as people read it."""
    return f"{instant:%Y-%m-%d %H:%M:%S} UTC"


def agent_in_the_way(row: Row) -> str | None:
    """Return why the agent of a wake or a run can be woken by nobody now, or None when it can be."""
    agent = row["agent_profile_id"]
    if row["agent_status"] is None:
        return f"there is no agent {agent} any more"
    return None if row["agent_status"] == WAKEABLE else f"agent {agent} is {row['agent_status']}"


def pause_in_the_way(row: Row) -> str | None:
    """Return since when and why the agent's workspace is paused, or None when it works."""
    if row["workspace_paused_at"] is None:
        return None
    because = f" ({row['pause_reason']})" if row["pause_reason"] else ""
    return f"workspace {row['workspace_id']} is paused since {at(row['workspace_paused_at'])}{because}"


def several(number: int, one: str) -> str:
    """Return `1 run`, `2 runs`."""
    return f"{number} {one}" if number == 1 else f"{number} {one}s"
