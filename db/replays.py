"""What a replay asks and writes in bulk: its workspace, its agents, and which of its events were applied before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, select, text
from sqlalchemy.dialects.postgresql import insert

from db.models import Agent, Step, Workspace

_LOCK: Final = text("SELECT pg_try_advisory_lock(hashtextextended(:name, 0))")
_APPLIED: Final = text("SELECT id, settled_at IS NOT NULL FROM mutations WHERE id = ANY(:ids)")
_RESULTS: Final = text("SELECT id, result FROM mutations WHERE id = ANY(:ids) AND settled_at IS NOT NULL")
_OTHERS: Final = text("SELECT id FROM workspaces WHERE id <> :own ORDER BY id LIMIT 1")


def lock(connection: Connection, name: str) -> bool:
    """Take the lock `name` for as long as the connection lives; False when another connection holds it."""
    return bool(connection.execute(_LOCK, {"name": name}).scalar_one())


def another_workspace(connection: Connection, own: str) -> str | None:
    """Return the id of some workspace other than `own`, or None when there is none."""
    found: str | None = connection.execute(_OTHERS, {"own": own}).scalar_one_or_none()
    return found


def has_workspace(connection: Connection, workspace_id: str) -> bool:
    """Tell whether there is such a workspace."""
    return connection.execute(select(1).where(Workspace.id == workspace_id)).scalar_one_or_none() is not None


def open_workspace(connection: Connection, workspace_id: str, name: str, step_id: str) -> None:
    """Make sure that the workspace, which nobody claims from or sweeps, and its one auto-starting step are there."""
    workspace = {"id": workspace_id, "name": name, "office_workflow_id": workspace_id, "is_replay": True}
    step = {"id": step_id, "workspace_id": workspace_id, "workflow_id": workspace_id, "name": name, "auto_start": True}
    connection.execute(insert(Workspace).values(workspace).on_conflict_do_nothing())
    connection.execute(insert(Step).values(step).on_conflict_do_nothing())


def hire(connection: Connection, workspace_id: str, role: str, agents: Iterable[str]) -> None:
    """Make sure that the agents are there."""
    rows = [{"id": agent, "workspace_id": workspace_id, "name": agent, "role": role} for agent in sorted(agents)]
    if rows:
        connection.execute(insert(Agent).on_conflict_do_nothing(), rows)


def applied(connection: Connection, mutation_ids: Sequence[str]) -> Mapping[str, bool]:
    """Return those of the mutations that were committed, each with whether it is settled too."""
    return {row[0]: row[1] for row in connection.execute(_APPLIED, {"ids": list(mutation_ids)})}


def results(connection: Connection, mutation_ids: Sequence[str]) -> Mapping[str, Any]:
    """Return the results of those of the mutations that are settled."""
    return {row[0]: row[1] for row in connection.execute(_RESULTS, {"ids": list(mutation_ids)})}
