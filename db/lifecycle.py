"""The lives of a run, a wake and a session: one table each of what moves them, and from where to where.

A write that moves a row is one `UPDATE … WHERE state = expected`; what it expects and what it sets is read from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from db.states import literals


class Move(NamedTuple):
    """One event: the states in which it is accepted, and the state it leads to. In any other it changes nothing."""

    sources: tuple[str, ...]
    target: str

    @property
    def expected(self) -> str:
        """The sources as a list of SQL literals: `status IN (…)`."""
        return literals(self.sources)


Machine = Mapping[str, Move]

# A claimed run is executed under a lease. `retry` gives it back with a time; `cancel` of a claimed one is what becomes
# of an execution that was asked to stop. REC-2.1.
RUN: Final[Machine] = {
    "claim": Move(("queued",), "claimed"),
    "finish": Move(("claimed",), "finished"),
    "retry": Move(("claimed",), "queued"),
    "fail": Move(("claimed",), "failed"),
    "cancel": Move(("queued", "claimed"), "cancelled"),
}

# An owed wake is decided once, or closed undecided when a later assignment made it moot (ADM-10.1, PRO-6.4). A bare
# wake is decided as it is written.
WAKE: Final[Machine] = {
    "decide": Move(("owed",), "decided"),
    "supersede": Move(("owed",), "superseded"),
}

# Live is whatever has not ended. The states `failed` and `cancelled` are the schema's; no event of ours leads there.
SESSION: Final[Machine] = {
    "start": Move(("idle", "running"), "running"),
    "rest": Move(("running",), "idle"),
    "complete": Move(("idle", "running"), "completed"),
}

# What a write expects that is no event of its own, or of which the event has more sources: a run that waits in line,
# one that is executed, a wake that is not decided.
QUEUED: Final = f"status IN ({RUN['claim'].expected})"
CLAIMED: Final = f"status IN ({RUN['finish'].expected})"
OWED: Final = f"state IN ({WAKE['decide'].expected})"
