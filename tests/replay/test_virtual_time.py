"""The back-test: each event at its own instant, nothing twice (OPS-1.5)."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import text

from office_tasks import admin
from office_tasks.errors import InvalidInput
from office_tasks.replay import virtual
from office_tasks.replay.errors import ReplayError
from office_tasks.replay.stage import BATCH
from tests.replay.conftest import HEADER, SAMPLE, assert_reconciles, count, rows

EXPECTED = {
    "events": 21, "created": 4, "assigned": 15, "unassigned": 2, "queued": 14, "coalesced": 2, "deduped": 0,
    "rate_limited": 2, "refused": 0, "owed": 0, "invalid": 0, "already_applied": 0,
    "most_rate_limited": [{"task_id": "T-2", "rate_limited": 2}],
}  # fmt: skip


def without_seconds(summary):
    return {name: value for name, value in summary.items() if name != "seconds"}


def test_the_totals_are_what_the_gates_say_and_what_the_database_holds(play, engine):
    summary = play(SAMPLE)
    assert without_seconds(summary) == EXPECTED
    assert_reconciles(summary, engine)


def test_each_event_is_applied_at_its_own_instant(play, engine):
    play(SAMPLE)
    assert rows(engine, "SELECT min(requested_at)::text, max(requested_at)::text FROM runs") == [
        ("2026-01-05 09:00:00+00", "2026-01-05 10:30:00+00")
    ]


def test_only_an_assignment_carries_its_actor(play, engine):
    play(SAMPLE)
    found = rows(engine, "SELECT DISTINCT producer, actor_type, actor_id IS NULL FROM wakes ORDER BY 1, 2")
    assert found == [("assign_task", "agent", False), ("assign_task", "user", True), ("create_task", None, True)]


def test_a_second_replay_applies_nothing(play, engine):
    play(SAMPLE)
    before = [count(engine, table) for table in ("mutations", "wakes", "runs", "events")]
    summary = play(SAMPLE)
    assert summary["already_applied"] == summary["events"] == 21
    assert summary["most_rate_limited"] == []
    assert [count(engine, table) for table in ("mutations", "wakes", "runs", "events")] == before


class AfterOneLook(threading.Event):
    """Is set when it is looked at for the second time."""

    looks = 0

    def is_set(self):
        self.looks += 1
        return self.looks > 1


def test_a_replay_that_was_stopped_is_continued(play, engine, write):
    file = write("many.csv", HEADER, *(f"2026-01-05T09:00:00Z,T-{n},create,ana,user," for n in range(BATCH + 100)))
    begun = play(file, stop=AfterOneLook())
    assert begun["created"] == begun["events"] == BATCH
    rest = play(file)
    assert (rest["created"], rest["already_applied"]) == (100, BATCH)
    assert count(engine, "mutations") == BATCH + 100


def test_a_mutation_that_a_killed_replay_left_unsettled_is_settled(play, engine):
    play(SAMPLE)
    with engine.begin() as connection:
        connection.execute(text("UPDATE mutations SET settled_at = NULL, result = NULL WHERE task_id = 'T-2'"))
    summary = play(SAMPLE)
    assert summary["already_applied"] == 21
    assert count(engine, "mutations WHERE settled_at IS NULL") == 0
    assert count(engine, "runs") == 14


def test_lanes_beside_this_process_come_to_the_same(play, engine, monkeypatch):
    monkeypatch.setattr(virtual, "WORTH_IT", 0)
    summary = play(SAMPLE)
    assert without_seconds(summary) == EXPECTED
    assert_reconciles(summary, engine)


def test_a_bad_line_is_skipped_and_counted(play, engine, write, capsys):
    lines = SAMPLE.read_text().splitlines()
    summary = play(write("a.csv", *lines[:5], "nonsense", *lines[5:]))
    assert (summary["invalid"], summary["events"]) == (1, 22)
    assert "line 6: has 1 fields, the header has 6" in capsys.readouterr().err
    assert_reconciles(summary, engine)


def test_many_bad_lines_are_told_in_few(play, write, capsys):
    summary = play(write("a.csv", HEADER, *["nonsense"] * 50))
    assert summary["invalid"] == 50
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 21
    assert told[-1] == "and 30 more lines like these"


def test_strict_stops_before_anything_is_written(play, engine, write, capsys):
    lines = SAMPLE.read_text().splitlines()
    with pytest.raises(ReplayError, match="has 1 bad line: nothing was written"):
        play(write("a.csv", *lines, "nonsense"), strict=True)
    assert "line 23: has 1 fields" in capsys.readouterr().err
    assert count(engine, "workspaces") == 0


def test_other_workspaces_are_left_alone(play, engine):
    admin.create_workspace(engine, "acme")
    with pytest.raises(ReplayError, match=r"holds other workspaces .*acme"):
        play(SAMPLE)
    assert count(engine, "workspaces") == 1
    assert count(engine, "mutations") == 0


def test_beside_other_workspaces_a_replay_keeps_its_ids_apart(play, engine, board):
    admin.create_agent(engine, "acme", "cleo")
    summary = play(SAMPLE, allow_shared=True)
    assert without_seconds(summary) == EXPECTED
    assert rows(engine, "SELECT id FROM agents WHERE workspace_id = 'acme' ORDER BY 1") == [
        ("ana",),
        ("bob",),
        ("cleo",),
    ]
    assert rows(engine, "SELECT DISTINCT workspace_id = 'acme' FROM tasks") == [(False,)]
    assert play(SAMPLE, allow_shared=True)["already_applied"] == 21


def test_a_replay_goes_on_in_the_workspace_where_it_began(play, engine):
    play(SAMPLE)
    admin.create_workspace(engine, "acme")
    assert play(SAMPLE, allow_shared=True)["already_applied"] == 21
    assert count(engine, "workspaces") == 2


def test_its_workspace_is_marked_so_that_no_claimer_and_no_sweep_touches_it(play, engine):
    play(SAMPLE)
    assert rows(engine, "SELECT is_replay FROM workspaces") == [(True,)]
    assert rows(engine, "SELECT DISTINCT role FROM agents") == [("worker",)]
    with pytest.raises(InvalidInput):
        admin.create_workspace(engine, rows(engine, "SELECT id FROM workspaces")[0][0])


def test_two_replays_of_one_file_do_not_run_at_once(play, engine):
    play(SAMPLE)
    name = rows(engine, "SELECT id FROM workspaces")[0][0]
    with engine.connect() as other:
        other.execute(text("SELECT pg_advisory_lock(hashtextextended(:name, 0))"), {"name": name})
        with pytest.raises(ReplayError, match="another replay of this file is running"):
            play(SAMPLE)


def test_a_schema_that_is_behind_is_told(play, engine):
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM alembic_version"))
    with pytest.raises(ReplayError, match="office migrate"):
        play(SAMPLE)
