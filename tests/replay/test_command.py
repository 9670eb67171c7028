"""`office replay` as a person or a script runs it (OPS-1.5)."""

from __future__ import annotations

import json
import signal

import pytest

from tests.replay.conftest import HEADER, SAMPLE, totals, wait_for_rows

pytestmark = pytest.mark.timeout(240)

NAMES = [
    "events", "created", "assigned", "unassigned", "queued", "coalesced", "deduped", "rate_limited", "refused", "owed",
    "invalid", "already_applied", "seconds", "most_rate_limited",
]  # fmt: skip


def test_json_is_one_object_and_nothing_else(command, database_url):
    done = command(SAMPLE, "--virtual-time", "--json", OFFICE_DATABASE_URL=database_url)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(totals(done)) == NAMES
    assert len(done.stdout.splitlines()) == 1


def test_without_a_database_it_uses_a_throwaway_one_that_data_keeps(command, tmp_path):
    place = tmp_path / "kept"
    assert totals(command(SAMPLE, "--json", "--data", place))["created"] == 4
    again = totals(command(SAMPLE, "--json", "--data", place))
    assert (again["created"], again["already_applied"]) == (0, 21)


def test_a_person_reads_a_table(command, database_url):
    done = command(SAMPLE, OFFICE_DATABASE_URL=database_url)
    assert done.returncode == 0
    said = done.stdout.splitlines()
    assert said[0].split()[:2] == ["events", "21"]
    assert said[-1].split() == ["T-2", "2"]


def test_verbose_shows_decisions_on_standard_error(command, database_url):
    done = command(SAMPLE, "--json", "--verbose", OFFICE_DATABASE_URL=database_url)
    assert "assignment_wake_refused" in done.stderr
    assert json.loads(done.stdout)["rate_limited"] == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["absent.csv"], "office: there is no file absent.csv"),
        ([SAMPLE, "--data", "x"], "--data keeps a throwaway server, and OFFICE_DATABASE_URL names another"),
        ([SAMPLE, "--virtual-time", "--via-celery"], "exclude each other"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(command, database_url, options, said):
    done = command(*options, OFFICE_DATABASE_URL=database_url)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert done.stdout == ""


def test_strict_ends_with_the_number_of_the_bad_line(command, database_url, write):
    done = command(write("a.csv", HEADER, "nonsense"), "--strict", "--json", OFFICE_DATABASE_URL=database_url)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("line 2: has 1 fields")


def test_ctrl_c_says_how_far_it_got_and_a_second_run_continues(start_command, command, database_url, write, engine):
    file = write("many.csv", HEADER, *(f"2026-01-05T09:00:00Z,T-{n},create,ana,user," for n in range(2000)))
    running = start_command(file, "--json", OFFICE_DATABASE_URL=database_url)
    wait_for_rows(engine, "mutations", 1)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    begun = json.loads(out)
    assert running.returncode == 130
    assert 0 < begun["created"] < 2000
    assert f"interrupted; {begun['events']} events were accounted for; run it again to continue" in err
    assert totals(command(file, "--json", OFFICE_DATABASE_URL=database_url))["already_applied"] == begun["events"]
