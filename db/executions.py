"""Running executions, and asking them to stop."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from db.statement import Statement


class Interrupt(NamedTuple):
    """Whose executions on a task are to stop (nobody named: everybody's), if they were claimed by then."""

    task_id: str
    agent_profile_id: str | None
    committed_at: dt.datetime


# Only what was claimed before the change was committed: the run that the change itself caused goes on.
INTERRUPT: Final = """
    UPDATE runs SET cancel_requested_at = office_now()
    WHERE task_id = :task_id AND (CAST(:agent_profile_id AS text) IS NULL OR agent_profile_id = :agent_profile_id)
      AND status = 'claimed' AND claimed_at <= CAST(:committed_at AS timestamptz) AND cancel_requested_at IS NULL
    RETURNING id"""

_INTERRUPT: Final = Statement(f"WITH interrupted AS ({INTERRUPT}) SELECT CAST(id AS text) FROM interrupted ORDER BY id")


def whom(interrupt: Interrupt | None) -> dict[str, Any]:
    """Return the parameters of `INTERRUPT`; None interrupts nobody."""
    return interrupt._asdict() if interrupt else dict.fromkeys(Interrupt._fields)


def interrupt(connection: Connection, wanted: Interrupt) -> list[str]:
    """Ask the executions to stop; return the runs. Repeatable."""
    return list(_INTERRUPT.run(connection, whom(wanted)).scalars())
