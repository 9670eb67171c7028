"""The office of one test: real gates and real rows, with a clock that moves when it is told."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from db import clock, rehearsal
from db.engine import autocommit
from db.errors import brief
from office_tasks import admin, app
from office_tasks.errors import OfficeError
from office_tasks.testing import messages

# A Monday; any instant would do.
START: Final = dt.datetime(2026, 3, 2, 9, 0, tzinfo=dt.UTC)


class OfficeNotEmptied(OfficeError):
    """What an earlier test left behind stands in the way of this one; the sentence says what."""


class Clock:
    """The office's one clock, which stands still: every connection to the test's database sees it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def now(self) -> dt.datetime:
        """The office's present instant, in UTC; 2026-03-02 09:00 when a test begins."""
        with autocommit(self._engine) as connection:
            return clock.now(connection)

    def advance(self, **delta: float) -> dt.datetime:
        """Move it on and return the new instant: `advance(minutes=10)`, with the units of `datetime.timedelta`."""
        return self.set(self.now + dt.timedelta(**delta))

    def set(self, instant: dt.datetime) -> dt.datetime:
        """Make it that instant, which must have a time zone; return it.

        Raises:
            ValueError: it has none.
        """
        if instant.tzinfo is None:
            raise ValueError(f"{instant!r} has no time zone")
        with autocommit(self._engine) as connection:
            rehearsal.move_clock(connection, instant)
        return instant


class TrialOffice:
    """An office in a database of the test's own, empty when the test begins.

    `workspace`, `agent`, `step` and `project` are `office_tasks.admin`'s `create_…` with the engine given: the same
    arguments, the same errors. `engine` serves the rest of that module, and reading rows. In the block of
    `with office.broker_away():` messages are refused with `kombu.exceptions.OperationalError`.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.clock = Clock(engine)
        self.workspace = partial(admin.create_workspace, engine)
        self.agent = partial(admin.create_agent, engine)
        self.step = partial(admin.create_step, engine)
        self.project = partial(admin.create_project, engine)
        self.broker_away = messages.refused

    @property
    def wakes(self) -> Sequence[Mapping[str, Any]]:
        """Every wake as its row: `outcome`, `reason`, `agent_profile_id`, `task_id`, `payload`, `run_id`, …."""
        with autocommit(self.engine) as connection:
            return rehearsal.wakes(connection)

    def relay(self) -> dict[str, int]:
        """Run one pass of the relay, as beat does every 5 s; return what it did.

        It takes up what is owed for 2 s: advance the clock first.
        """
        return self._job("recovery.relay_owed")

    def sweep(self) -> dict[str, Any]:
        """Run one pass of the sweep for tasks that never started, as beat does every minute; return what it did."""
        return self._job("recovery.recover_unstarted_tasks")

    def begin(self) -> None:
        """Delete what the last test left and set the clock to `START`.

        Raises:
            OfficeNotEmptied: a transaction that is still open, or a row of a table of yours, holds on to some of it.
        """
        try:
            with self.engine.begin() as connection:
                rehearsal.empty(connection)
                rehearsal.move_clock(connection, START)
        except DBAPIError as error:
            raise OfficeNotEmptied(
                f"the office of the last test cannot be emptied: {brief(error)}. Close sessions, and delete rows of "
                "yours that refer to the office's, when a test ends"
            ) from None

    @staticmethod
    def _job(name: str) -> dict[str, Any]:
        # Nothing here may import recovery; the app includes it.
        done: dict[str, Any] = app.tasks[name].apply(throw=True).get()
        return done
