"""Celery's configuration, the settings it comes from, and what importing does."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import textwrap

import pytest
from celery.app.defaults import NAMESPACES, flatten

from db.leases import GRACE
from office_tasks import app
from office_tasks.admin import LOOKBACK_HOURS
from office_tasks.admission import ALLOWANCE_WINDOW, DUPLICATE_LOOKBACK
from office_tasks.configuration import UNLIMITED, configuration
from office_tasks.settings import Settings, SettingsError, load
from tests.nodes.engine import ROOT

# RedBeat's own are what it reads; it is an extra, and nothing lists them.
KNOWN = {name.lower() for name, _ in flatten(NAMESPACES)} | {
    "redbeat_redis_url", "redbeat_redis_options", "redbeat_lock_timeout",
}  # fmt: skip
TASKS = {
    "office.assign_task",
    "office.create_task",
    "office.execute_run",
    "office.pause_workspace",
    "office.queue_run",
    "office.resume_workspace",
    "office.settle_mutation",
    "office.add_participant",
    "office.remove_participant",
    "office.claim_seat",
    "office.terminate_session",
    "office.delete_agent",
    "office.spawn_run",
    "office.task_created",
    "office.add_comment",
    "office.enter_step",
    "office.onboard_task",
    "office.set_task_status",
    "office.task_updated",
    "recovery.dispatch_queued_runs",
    "recovery.purge_history",
    "recovery.recover_unstarted_tasks",
    "recovery.relay_owed",
    "recovery.rescue_stale_claims",
}
# What the one Celery task with limits of its own takes them from.
OURS = {"office_run_soft_limit", "office_run_hard_limit"}


def test_celery_knows_every_option_that_we_set():
    """8-engineering, habit 14: Celery accepts a misspelt option silently, so its own list decides."""
    assert set(configuration(Settings())) - KNOWN == OURS


def test_what_the_worker_relies_on():
    """ADM-8.2, R05, ADM-10.5: JSON only, acknowledged late, rejected when the child is lost, one message at a time."""
    options = configuration(Settings())
    assert options["accept_content"] == options["result_accept_content"] == ["json"]
    assert options["task_acks_late"]
    assert options["task_reject_on_worker_lost"]
    assert options["worker_prefetch_multiplier"] == 1
    limits = options["task_soft_time_limit"], options["task_time_limit"]
    assert limits[0] < limits[1] < options["broker_transport_options"]["visibility_timeout"]


@pytest.mark.parametrize(("given", "soft"), [(None, UNLIMITED), (90, 90)])
def test_a_run_has_limits_of_its_own(given, soft):
    """REC-2.9, 8-engineering, habit 14: none by default; ours comes first, so that the run can say so."""
    options = configuration(Settings(run_time_limit=given))
    assert options["office_run_soft_limit"] == soft
    assert options["office_run_hard_limit"] > soft + GRACE.total_seconds()
    assert (options["task_soft_time_limit"], options["task_time_limit"]) == (
        Settings().soft_time_limit, Settings().time_limit,
    )  # fmt: skip


def test_executing_a_run_differs_from_every_other_task():
    """REC-2.9: acknowledged early, its result kept by its row, under its own limits; nothing else is."""
    app.loader.import_default_modules()
    mine = {name: app.tasks[name] for name in TASKS}
    early = {name for name, task in mine.items() if not task.acks_late or not task.reject_on_worker_lost}
    silent = {name for name, task in mine.items() if task.ignore_result}
    limited = {
        name for name, task in mine.items()
        if (task.soft_time_limit, task.time_limit) != (app.conf.task_soft_time_limit, app.conf.task_time_limit)
    }  # fmt: skip
    assert early == silent == limited == {"office.execute_run"}


def test_task_names_are_wire_format():
    """8-engineering, habit 15: these names, and no other; renaming one loses the messages in the queue."""
    app.loader.import_default_modules()
    assert {name for name in app.tasks if name.startswith(("office.", "recovery."))} == TASKS


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"SOFT_TIME_LIMIT": "15"}, ["OFFICE_SOFT_TIME_LIMIT < OFFICE_TIME_LIMIT < OFFICE_VISIBILITY_TIMEOUT", "15"]),
        ({"TIME_LIMIT": "20"}, ["OFFICE_TIME_LIMIT < OFFICE_VISIBILITY_TIMEOUT", "20"]),
        ({"VISIBILITY_TIMEOUT": "5"}, ["OFFICE_VISIBILITY_TIMEOUT"]),
        ({"CONCURRENCY": "0"}, ["OFFICE_CONCURRENCY"]),
        ({"CONCURRENCY": "many"}, ["OFFICE_CONCURRENCY"]),
        ({"LOG_LEVEL": "LOUD"}, ["OFFICE_LOG_LEVEL"]),
        ({"DATABASE_URL": "mysql://u:secret@h/d"}, ["OFFICE_DATABASE_URL", "postgresql+psycopg://"]),
        ({"BROKER_URL": ""}, ["OFFICE_BROKER_URL is no URL"]),
        ({"BROKER_URL": "bogus://:secret@h/0"}, ["OFFICE_BROKER_URL", "bogus://"]),
        ({"BROKER_URL": "redis://:secret@h:port/0"}, ["OFFICE_BROKER_URL", "port"]),
        ({"RESULT_BACKEND": "bogus://x"}, ["OFFICE_RESULT_BACKEND", "bogus://"]),
        ({"EVENTS_URL": "http://x"}, ["OFFICE_EVENTS_URL", "http://"]),
        ({"RUN_RETENTION_DAYS": "30"}, ["OFFICE_RUN_RETENTION_DAYS must be at least 31", "is 30", "lookback", "720 h"]),
        ({"RUN_RETENTION_DAYS": "-1"}, ["OFFICE_RUN_RETENTION_DAYS must be at least 31"]),
        ({"HISTORY_RETENTION_DAYS": "1"}, ["OFFICE_HISTORY_RETENTION_DAYS must be at least 2", "duplicate", "24 h"]),
        ({"RUN_RETENTION_DAYS": "99999999999"}, ["OFFICE_RUN_RETENTION_DAYS"]),
        ({"CONCURRENCY": "0", "LOG_LEVEL": "LOUD"}, ["OFFICE_CONCURRENCY", "OFFICE_LOG_LEVEL"]),
    ],
)
def test_a_bad_setting_is_one_sentence(monkeypatch, given, named):
    """8-engineering, habit 14, OPS-2, REC-3.3: the sentence names the variables and never a secret."""
    for name, value in given.items():
        monkeypatch.setenv(f"OFFICE_{name}", value)
    with pytest.raises(SettingsError) as refused:
        load()
    assert all(word in str(refused.value) for word in named)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_shortest_retention_outlives_every_window():
    """REC-3.3: 31 days of runs, 2 of the rest; the bounds follow from the windows, and the defaults are beyond them."""
    shortest = Settings(run_retention_days=31, history_retention_days=2)
    lookback = dt.timedelta(hours=max(LOOKBACK_HOURS))
    assert shortest.run_retention > max(lookback, DUPLICATE_LOOKBACK, ALLOWANCE_WINDOW)
    assert shortest.history_retention > max(DUPLICATE_LOOKBACK, ALLOWANCE_WINDOW)
    assert (Settings().run_retention.days, Settings().history_retention.days) == (90, 14)


def test_importing_reads_no_setting_and_opens_nothing():
    """8-engineering, habit 10: with nonsense in the environment and sockets that refuse, the import is quiet."""
    script = """
        import os, socket
        opened = []
        class Refusing(socket.socket):
            def connect(self, address):
                opened.append(address)
                raise OSError("no")
        socket.socket = Refusing
        import office_tasks, recovery
        assert opened == [], opened
    """
    bogus = {"OFFICE_DATABASE_URL": "nonsense", "OFFICE_CONCURRENCY": "none", "OFFICE_BROKER_URL": "zork://"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**bogus, "PATH": ""}, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
