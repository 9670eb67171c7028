"""What beat sends, and when: one entry a recovery job."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from office_tasks import app


def _every(seconds: int, task: str) -> dict[str, Any]:
    # A tick that was queued while workers were down expires before the next one: a backlog is never run in a burst.
    return {"task": task, "schedule": seconds, "options": {"expires": seconds * 0.9}}


# Beat counts from its own start what it never sent. A beat that never lived for an hour would never purge, and in the
# first hour of a new one nobody could tell whether that works.
_LONG_AGO: Final = dt.datetime.fromtimestamp(0, dt.UTC)

SCHEDULE: Final = {
    "relay-owed": _every(5, "recovery.relay_owed"),
    "dispatch-queued-runs": _every(5, "recovery.dispatch_queued_runs"),
    "rescue-stale-claims": _every(30, "recovery.rescue_stale_claims"),
    "recover-unstarted-tasks": _every(60, "recovery.recover_unstarted_tasks"),
    "purge-history": {**_every(3_600, "recovery.purge_history"), "last_run_at": _LONG_AGO},
}

app.add_defaults({"beat_schedule": SCHEDULE})
