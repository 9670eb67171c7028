"""The office's app for schedulers in tests: ticks of the sweep every second, and a lock that is soon given up."""

from __future__ import annotations

import recovery.schedule  # noqa: F401 - the schedule that this one replaces
from office_tasks import app

JOB = "recovery.recover_unstarted_tasks"

app.conf.update(
    beat_schedule={"quick": {"task": JOB, "schedule": 1, "options": {"expires": 0.9}}},
    beat_max_loop_interval=1,
    redbeat_lock_timeout=5,
)
