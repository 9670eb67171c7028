"""The small office that the demo plays in."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Engine, delete

from db.models import Workspace
from office_tasks import admin
from office_tasks.ids import new_id
from office_tasks.producers.creation import create_task

HOME: Final = "atelier"
PAUSED_LATER: Final = "annex"
DOING: Final = "doing"
BACKLOG: Final = "backlog"
RETRIED: Final = "kiln"
SWEPT: Final = "hedge"
RESUMED_LATER: Final = "gus"
_GONE: Final = "barn"


def furnish(engine: Engine) -> None:
    """Create its workspaces, steps, agents and tasks."""
    for workspace in (HOME, PAUSED_LATER, _GONE):
        admin.create_workspace(engine, workspace, workflow_id=f"{workspace}-office")
    admin.create_step(engine, HOME, DOING, workflow_id=f"{HOME}-office", auto_start=True)
    admin.create_step(engine, HOME, BACKLOG, workflow_id=f"{HOME}-office")
    admin.create_step(engine, PAUSED_LATER, "packing", workflow_id=f"{PAUSED_LATER}-office", auto_start=True)
    for agent in ("ada", "ben", "cleo", "dan", "eli", "fay"):
        admin.create_agent(engine, HOME, agent)
    admin.create_agent(engine, HOME, "sam", status="stopped")
    admin.create_agent(engine, HOME, RESUMED_LATER, status="paused")
    admin.create_agent(engine, HOME, "rex", role="reviewer")
    admin.create_agent(engine, PAUSED_LATER, "eve")
    _lose_the_workspace_of(engine, "ivy")
    create_task(engine, str(new_id()), HOME, "loop", task_id="loop", step_id=DOING)
    create_task(engine, str(new_id()), PAUSED_LATER, "crate", task_id="crate", step_id="packing")


def _lose_the_workspace_of(engine: Engine, agent: str) -> None:
    admin.create_agent(engine, _GONE, agent)
    with engine.begin() as connection:
        connection.execute(delete(Workspace).where(Workspace.id == _GONE))
