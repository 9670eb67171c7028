"""The safety net for lost signals: as many are sent as runs could start, less those that wait already (REC-2.6)."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Engine

from db import claims
from db.engine import autocommit
from office_tasks.execution.signals import Signals

MOST: Final = 100


def dispatch_once(engine: Engine, signals: Signals) -> dict[str, int]:
    """Top up the signals; return how many runs could start (counted up to `MOST`) and how many signals were sent."""
    with autocommit(engine) as connection:
        startable = claims.startable(connection, MOST)
    missing = startable - signals.waiting() if startable else 0
    return {"startable": startable, "signalled": signals.send(max(0, missing))}
