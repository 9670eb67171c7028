"""Replays in the test's own database, and the command as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import text

from office_tasks.replay.report import Report
from office_tasks.replay.run import Replay, replay
from office_tasks.replay.tally import Tally

DATA = Path(__file__).parents[1] / "data"
SAMPLE = DATA / "sample_assignments.csv"
HEADER = "occurred_at,task_id,event,assignee_id,actor_type,actor_id"
COMMAND = "from office_tasks.cli import main; main()"
ROOT = Path(__file__).parents[2]
REAL = ROOT.parent / "shared" / "data" / "incident_assignments.csv.gz"
NO_REAL = "the real file is not beside this checkout (../shared/data)"


@pytest.fixture
def named(monkeypatch, database_url):
    """The test's own database is the one that the settings name."""
    monkeypatch.setenv("OFFICE_DATABASE_URL", database_url)
    return database_url


@pytest.fixture
def play(named):
    """Return a function that replays a file and returns the summary."""

    def run(file, *, stop=None, **options):
        tally = Tally()
        replay(Replay(file, **options), tally, Report(), stop or threading.Event())
        return tally.summary()

    return run


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file from its lines."""

    def to(name, *lines):
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return to


@pytest.fixture
def start_command(tmp_path):
    """Return a function that starts `office replay`; without a database, unless one is named."""
    started = []

    def start(*arguments, **env):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("OFFICE_")}
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "replay", *map(str, arguments)],
            env={**clean, "PYTHONPATH": str(ROOT), **env},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def command(start_command):
    """Return a function that runs `office replay` to its end and returns what it said."""

    def run(*arguments, **env):
        process = start_command(*arguments, **env)
        out, err = process.communicate(timeout=200)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    return run


def wait_for_rows(engine, table, number, seconds=60):
    """Wait until the table has so many rows."""
    deadline = time.monotonic() + seconds
    while count(engine, table) < number:
        assert time.monotonic() < deadline, f"{table} has {count(engine, table)} rows"


def rows(engine, query):
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def count(engine, table):
    return rows(engine, f"SELECT count(*) FROM {table}")[0][0]


def assert_reconciles(summary, engine):
    """Every event is accounted for once, each wake once, and the database holds the same."""
    applied = summary["created"] + summary["assigned"] + summary["unassigned"]
    assert summary["events"] == applied + summary["invalid"] + summary["already_applied"]
    wakes = {name: summary[name] for name in ("queued", "coalesced", "deduped", "rate_limited")}
    assert summary["refused"] == summary["owed"] == 0
    assert count(engine, "mutations WHERE settled_at IS NOT NULL") == applied
    assert count(engine, "runs") == summary["queued"]
    stored = Counter(dict(rows(engine, "SELECT outcome, count(*) FROM wakes WHERE state = 'decided' GROUP BY outcome")))
    assert stored == +Counter(wakes)
    assert count(engine, "wakes") == sum(wakes.values())
    assert rows(engine, "SELECT idempotency_key FROM runs GROUP BY 1 HAVING count(*) > 1") == []


def totals(process):
    """Return the one object on standard output."""
    return json.loads(process.stdout)
