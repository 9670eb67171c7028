"""Time-ordered identifiers."""

from __future__ import annotations

import uuid

from uuid_utils.compat import uuid7


def new_id() -> uuid.UUID:
    """Return a new UUIDv7 (ADM-8.3)."""
    return uuid7()
