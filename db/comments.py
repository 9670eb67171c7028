"""Comments, and the agents that one may mention."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, text

from db.clock import AT

_ADD: Final = text(f"""
    INSERT INTO comments (id, task_id, author_type, author_id, body, created_at)
    VALUES (:id, :task_id, :author_type, :author_id, :body, {AT}) ON CONFLICT (id) DO NOTHING""")
_SAME: Final = text("""
    SELECT EXISTS (SELECT FROM comments WHERE id = :id AND task_id = :task_id AND author_type = :author_type
                   AND author_id = :author_id AND body = :body)""")
_AMONG: Final = text("SELECT id FROM agents WHERE workspace_id = :workspace_id AND id = ANY(:ids) ORDER BY id")


def add(connection: Connection, columns: Mapping[str, Any]) -> bool:
    """Insert a comment, or find the very same one; False when its id belongs to another."""
    return connection.execute(_ADD, columns).rowcount == 1 or bool(connection.execute(_SAME, columns).scalar_one())


def agents_among(connection: Connection, workspace_id: str, ids: Collection[str]) -> Sequence[str]:
    """Return those of the ids that name an agent of the workspace, ordered."""
    if not ids:
        return []
    return connection.execute(_AMONG, {"workspace_id": workspace_id, "ids": list(ids)}).scalars().all()
