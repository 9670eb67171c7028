"""Events that wait to be sent, and the one relay at a time that sends them (PRO-7.1)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, text

# Any constant of our own; held until the transaction ends, so a relay that dies frees it.
_ONE_RELAY: Final = text("SELECT pg_try_advisory_xact_lock(hashtext('office.events'))")
_UNSENT: Final = text("""
    SELECT id, task_id, type, changed, created_at FROM events WHERE sent_at IS NULL ORDER BY id LIMIT :most""")
_SENT: Final = text("UPDATE events SET sent_at = office_now() WHERE id = ANY(:ids)")


class Unsent(NamedTuple):
    """One event that waits."""

    id: int
    task_id: str
    type: str
    changed: list[str]
    created_at: dt.datetime


def take_turn(connection: Connection) -> bool:
    """Become the relay until the transaction ends; False when another one is."""
    return bool(connection.execute(_ONE_RELAY).scalar_one())


def unsent(connection: Connection, most: int) -> Sequence[Unsent]:
    """Return the oldest events that wait, by id."""
    return [Unsent(*row) for row in connection.execute(_UNSENT, {"most": most})]


def mark_sent(connection: Connection, ids: Sequence[int]) -> None:
    """Mark events as sent."""
    connection.execute(_SENT, {"ids": list(ids)})
