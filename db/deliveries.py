"""How often a broker message came back (ADM-10.5)."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, text

_COUNT: Final = text("""
    INSERT INTO deliveries (id, task_name, deliveries) VALUES (:id, :task_name, 2)
    ON CONFLICT (id) DO UPDATE SET deliveries = deliveries.deliveries + 1, last_at = office_now()
    RETURNING deliveries""")
_POISON: Final = text("UPDATE deliveries SET poisoned_at = office_now() WHERE id = :id AND poisoned_at IS NULL")


def count(connection: Connection, message_id: str, task_name: str) -> int:
    """Count one more delivery of a redelivered message and return how many there have been; commits by itself."""
    deliveries: int = connection.execute(_COUNT, {"id": message_id, "task_name": task_name}).scalar_one()
    return deliveries


def poison(connection: Connection, message_id: str) -> None:
    """Mark the message as given up, for `office status` to name."""
    connection.execute(_POISON, {"id": message_id})
