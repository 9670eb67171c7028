"""The kill switch: pausing and resuming a workspace, and what a resumed one takes up (PRO-6.4)."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from functools import partial
from typing import Final

from sqlalchemy import Engine

from db import owed, pauses
from db.engine import autocommit
from office_tasks import validation
from office_tasks.admission import stored
from office_tasks.errors import NotFound
from office_tasks.producers.after import Interrupt, Result, admit_owed
from office_tasks.producers.mutation import THE_USER, Change, Note, Transaction, commit
from office_tasks.prose import shown

# What one resumption takes up by itself; the relay goes on from there.
MOST_REPLAYED: Final = 500


def pause_workspace(
    engine: Engine,
    mutation_id: str,
    workspace_id: object,
    reason: object = "",
    instant: dt.datetime | None = None,
    *,
    interrupt: object = False,
) -> Result:
    """Pause a workspace: from its commit on, gate 2 refuses every wake of its agents. Pausing twice changes nothing.

    Running executions go on, unless `interrupt`: after the commit they are asked to stop (REC-2.10), those of a
    workspace that was paused before as well, and are named in the result's `interrupted`.

    Raises:
        InvalidInput: a bad identifier or reason, or an `interrupt` that is no boolean.
        NotFound: no such workspace.
    """
    work = partial(
        _pause,
        workspace_id=validation.identifier("workspace_id", workspace_id),
        reason=validation.text("reason", reason, limit=validation.MAX_TITLE_BYTES),
        interrupt=validation.flag("interrupt", interrupt),
    )
    return commit(engine, mutation_id, work, instant)


def resume_workspace(
    engine: Engine, mutation_id: str, workspace_id: object, instant: dt.datetime | None = None
) -> Result:
    """Resume a workspace; what it owes then passes the gates once, oldest first, less what was superseded meanwhile.

    Raises:
        NotFound: no such workspace.
    """
    wanted = validation.identifier("workspace_id", workspace_id)
    result = commit(engine, mutation_id, partial(_resume, workspace_id=wanted), instant)
    return {**result, "replayed": _replay(engine, wanted, instant)}


def _pause(tx: Transaction, *, workspace_id: str, reason: str, interrupt: bool) -> Change:
    _lock(tx, workspace_id)
    changed = pauses.pause(tx.connection, workspace_id, reason, tx.instant)
    result = {"workspace_id": workspace_id, "paused": True, "changed": changed}
    whom = Interrupt(workspace_id=workspace_id) if interrupt else None
    return Change(kind="pause_workspace", actor=THE_USER, result=result, interrupt=whom)


def _resume(tx: Transaction, *, workspace_id: str) -> Change:
    _lock(tx, workspace_id)
    changed = pauses.resume(tx.connection, workspace_id, tx.instant)
    # Before the commit that opens the gate: nobody may admit what a later assignment made moot.
    closed = owed.supersede(tx.connection, workspace_id, tx.instant) if changed else []
    result = {"workspace_id": workspace_id, "paused": False, "changed": changed, "superseded": len(closed)}
    notes = [Note("wake_superseded", one._asdict()) for one in closed]
    return Change(kind="resume_workspace", actor=THE_USER, result=result, notes=notes)


def _replay(engine: Engine, workspace_id: str, instant: dt.datetime | None) -> dict[str, int]:
    with autocommit(engine) as connection:
        waiting = [stored(row) for row in owed.of_workspace(connection, workspace_id, MOST_REPLAYED)]
    return dict(Counter(admit_owed(engine, one, instant).outcome.value for one in waiting))


def _lock(tx: Transaction, workspace_id: str) -> None:
    if not pauses.lock_workspace(tx.connection, workspace_id):
        raise NotFound(f"there is no workspace {shown(workspace_id)}")
