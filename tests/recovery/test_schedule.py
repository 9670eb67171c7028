"""What beat sends, and for how long a tick is good."""

from __future__ import annotations

import pytest

from office_tasks import app
from recovery.schedule import SCHEDULE


@pytest.mark.parametrize("entry", SCHEDULE.values(), ids=SCHEDULE)
def test_a_tick_expires_before_the_next_one(entry):
    """REC-1.10, REC-3: a backlog of ticks is never executed in a burst."""
    assert 0 < entry["options"]["expires"] < entry["schedule"]


def test_every_entry_names_a_job_on_the_recovery_queue():
    """REC-3: a misspelt job would be sent for ever, to nobody."""
    app.loader.import_default_modules()
    for entry in SCHEDULE.values():
        assert entry["task"] in app.tasks
        assert app.amqp.router.route({}, entry["task"])["queue"].name == "recovery"
    assert app.conf.beat_schedule == SCHEDULE
