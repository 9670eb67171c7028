"""The kill switch: pausing and resuming a workspace."""

from __future__ import annotations

import datetime as dt
from functools import partial

from sqlalchemy import Connection, Engine

from db import pauses
from office_tasks import validation
from office_tasks.errors import NotFound
from office_tasks.producers.mutation import Actor, Change, Result, commit


def pause_workspace(
    engine: Engine, mutation_id: str, workspace_id: object, reason: object = "", instant: dt.datetime | None = None
) -> Result:
    """Pause a workspace: from its commit on, gate 2 refuses every wake of its agents. Pausing twice changes nothing.

    Raises:
        NotFound: no such workspace.
    """
    change = partial(
        _pause,
        workspace_id=validation.identifier("workspace_id", workspace_id),
        reason=validation.text("reason", reason),
    )
    return commit(engine, mutation_id, change, instant)


def resume_workspace(
    engine: Engine, mutation_id: str, workspace_id: object, instant: dt.datetime | None = None
) -> Result:
    """Resume a workspace. Resuming one that is not paused changes nothing.

    Raises:
        NotFound: no such workspace.
    """
    change = partial(_resume, workspace_id=validation.identifier("workspace_id", workspace_id))
    return commit(engine, mutation_id, change, instant)


def _pause(connection: Connection, instant: dt.datetime, *, workspace_id: str, reason: str) -> Change:
    _lock(connection, workspace_id)
    changed = pauses.pause(connection, workspace_id, reason, instant)
    result = {"workspace_id": workspace_id, "paused": True, "changed": changed}
    return Change(kind="pause_workspace", actor=Actor(None), result=result)


def _resume(connection: Connection, instant: dt.datetime, *, workspace_id: str) -> Change:
    _lock(connection, workspace_id)
    changed = pauses.resume(connection, workspace_id, instant)
    result = {"workspace_id": workspace_id, "paused": False, "changed": changed}
    return Change(kind="resume_workspace", actor=Actor(None), result=result)


def _lock(connection: Connection, workspace_id: str) -> None:
    if not pauses.lock_workspace(connection, workspace_id):
        raise NotFound(f"there is no workspace {workspace_id!r}")
