"""What beat sends, and for how long a tick is good."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys

import pytest

from office_tasks import app
from recovery.schedule import SCHEDULE
from tests.nodes.engine import ROOT


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


# Starts a beat twice with one schedule file, each time in the state of one that has just read it, and prints which
# entries are due at once.
START = """
import json, sys
from celery.beat import PersistentScheduler
from office_tasks import app
app.loader.import_default_modules()
for _ in range(2):
    beat = PersistentScheduler(app=app, schedule_filename=sys.argv[1], lazy=True)
    beat.setup_schedule()
    due = [entry for entry in beat.schedule.values() if entry.is_due().is_due]
    print(json.dumps([entry.name for entry in due]))
    for entry in due:
        beat.reserve(entry)
    beat.close()
"""


def test_a_new_beat_purges_as_it_starts_and_one_that_knows_of_a_purge_does_not(tmp_path):
    """REC-3.2: in the first hour it is seen whether the purge works, and a beat that lives for less purges too."""
    done = subprocess.run(
        [sys.executable, "-c", START, str(tmp_path / "schedule")],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=100, check=True, capture_output=True,
    )  # fmt: skip
    assert [json.loads(line) for line in done.stdout.splitlines()] == [["purge-history"], []]


# Steps the schedule as beat does, in virtual time, from an hour before the clock of the local zone is changed to an
# hour after it, and prints when each entry was sent, in seconds since the beginning.
STEP = """
import collections, datetime as dt, json, sys, time
from celery.beat import Scheduler
from office_tasks import app
begin = dt.datetime.fromisoformat(sys.argv[1]) - dt.timedelta(hours=1)
here = [begin]
app.loader.import_default_modules()
app.now = lambda: here[0].astimezone(app.timezone)
sent = collections.defaultdict(list)

class Recording(Scheduler):
    producer = None  # no broker
    sending = False

    def apply_entry(self, entry, producer=None):
        self.sending = True
        sent[entry.name].append((here[0] - begin).total_seconds())

beat = Recording(app=app)
while here[0] < begin + dt.timedelta(hours=2):
    beat.tick()
    if not beat.sending:
        here[0] += dt.timedelta(seconds=1 / 16)
    beat.sending = False
print(json.dumps({"zone": time.tzname, "sent": sent}))
"""
# The instants at which the clocks of a zone go forward and back.
CHANGES = {
    "Europe/Berlin": ("2026-03-29T01:00:00+00:00", "2026-10-25T01:00:00+00:00"),
    "America/New_York": ("2026-03-08T07:00:00+00:00", "2026-11-01T06:00:00+00:00"),
}


@pytest.mark.parametrize(("zone", "change"), [(zone, each) for zone, both in CHANGES.items() for each in both])
def test_a_clock_change_neither_misses_nor_doubles_a_tick(zone, change):
    """R10: entries are fixed intervals in UTC, whatever the machine's zone does."""
    done = subprocess.run(
        [sys.executable, "-c", STEP, change],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), "TZ": zone}, timeout=100, check=True, capture_output=True,
    )  # fmt: skip
    said = json.loads(done.stdout)
    assert set(said["zone"]) in ({"CET", "CEST"}, {"EST", "EDT"}), "the zone is known here"
    assert set(said["sent"]) == set(SCHEDULE)
    for name, at in said["sent"].items():
        every = SCHEDULE[name]["schedule"]
        assert 2 * 3600 // every - 1 <= len(at) <= 2 * 3600 // every + 1
        assert at[0] <= (0 if name == "purge-history" else every + 1)
        assert {round(later - earlier) for earlier, later in itertools.pairwise(at)} <= {every}


def test_every_entry_is_a_fixed_interval_in_utc():
    """R10: no crontab, which would mean an hour of some zone."""
    assert (app.conf.enable_utc, app.conf.timezone) == (True, "UTC")
    assert all(isinstance(entry["schedule"], int) for entry in SCHEDULE.values())
