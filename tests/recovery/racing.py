"""What a process of its own does in a race of sweeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from db.engine import make_engine
from office_tasks.ids import new_id
from recovery.sweep import sweep_once


def sweep(_number: int, start: Callable[[], Any], url: str, now: str) -> dict[str, Any]:
    """Sweep once, at the instant `now`, when everybody is ready."""
    engine = make_engine(url, session={"office.now": now})
    with engine.connect():
        pass
    start()
    done = sweep_once(engine, str(new_id()))
    engine.dispose()
    return done
