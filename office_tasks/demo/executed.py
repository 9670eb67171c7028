"""What became of the runs: what the contract says of each, and what its row says."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Engine

from db import listing
from db.engine import autocommit
from db.states import RUN_TERMINAL
from office_tasks.demo.office import RETRIED, SWEPT
from office_tasks.producers.producer import Producer
from office_tasks.reasons import MANUAL_RESUME, TASK_ASSIGNED

MOST: Final = 100
POLL_SECONDS: Final = 0.1


class Became(NamedTuple):
    """One run and its end: whose, why and on which task; which attempt was its last; whether the sweep asked for it."""

    agent_profile_id: str
    reason: str
    task_id: str | None
    status: str
    attempt: int = 1
    cancel_reason: str | None = None
    is_swept: bool = False

    @property
    def run(self) -> tuple[str, str, str | None]:
        """What tells it from others."""
        return self[:3]

    def __str__(self) -> str:
        """Its end, in words."""
        why = f", {self.cancel_reason}" if self.cancel_reason else ""
        return f"{self.status}{why} (attempt {self.attempt}{', woken by the sweep' if self.is_swept else ''})"


def _assigned(agent: str, task_id: str | None, **more: Any) -> Became:  # noqa: ANN401 - what `Became` has
    return Became(agent, TASK_ASSIGNED, task_id, "finished", **more)


def _stale(agent: str, task_id: str) -> Became:
    return Became(agent, TASK_ASSIGNED, task_id, "cancelled", cancel_reason="runner_changed")


_EXECUTED: Final = "the handler returned"
_PASSED_ON: Final = "was given to somebody else meanwhile: cancelled before its handler started"

# What must become of each run that the cases leave, and why.
CONTRACT: Final[Sequence[tuple[Became, str]]] = (
    (Became("ben", "weekly_report", None, "finished"), _EXECUTED),
    (_assigned("ada", "letter"), _EXECUTED),
    (_assigned("ada", "letter"), _EXECUTED),
    (_stale("ben", "letter"), f"letter {_PASSED_ON}"),
    (_stale("ada", "door"), "door was unassigned meanwhile: cancelled before its handler started"),
    *((_stale(agent, "loop"), f"loop {_PASSED_ON}") for agent in ("ada", "ben", "cleo", "dan", "eli")),
    (_assigned("fay", "loop"), _EXECUTED),
    (_assigned("dan", None), _EXECUTED),
    (_assigned("eve", "crate"), _EXECUTED),
    (Became("eve", MANUAL_RESUME, None, "finished"), _EXECUTED),
    (
        _assigned("ben", RETRIED, attempt=2),
        "the first attempt raised RetryAt, a second later; beat's safety net had it executed again",
    ),
    (
        _assigned("gus", SWEPT, is_swept=True),
        "assigned while gus was paused, so never started; he was resumed, and the sweep woke him",
    ),
)


def when_over(engine: Engine, seconds: float) -> list[Became]:
    """Return what became of all runs once none is queued or claimed, or as they are after so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        with autocommit(engine) as connection:
            rows = listing.runs(connection, task_id=None, agent_profile_id=None, status=None, most=MOST)
            swept = _swept(listing.wakes_of_task(connection, SWEPT))
        over = len(rows) >= len(CONTRACT) and all(row["status"] in RUN_TERMINAL for row in rows)
        if over or time.monotonic() > deadline:
            return [_became(row, swept) for row in rows]
        time.sleep(POLL_SECONDS)


def surprises(runs: Iterable[Became]) -> list[str]:
    """Return what differs from the contract."""
    found, expected = Counter(runs), Counter(became for became, _ in CONTRACT)
    return [
        *(f"{_name(became)}: expected {became}" for became in (expected - found).elements()),
        *(f"{_name(became)}: got {became}" for became in (found - expected).elements()),
    ]


def _swept(wakes: listing.Rows) -> set[Any]:
    return {wake["run_id"] for wake in wakes if wake["producer"] == Producer.RECOVERY_SWEEP}


def _became(row: Mapping[str, Any], swept: set[Any]) -> Became:
    columns = {name: row[name] for name in Became._fields if name != "is_swept"}
    return Became(**columns, is_swept=row["id"] in swept)


def _name(became: Became) -> str:
    agent, reason, task_id = became.run
    return f"the run of {agent}, {reason}{f' of {task_id}' if task_id else ''}"
