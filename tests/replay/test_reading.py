"""What a line says, and why it says nothing usable (OPS-1.5)."""

from __future__ import annotations

import datetime as dt
import gzip
import json

import pytest

from office_tasks.replay.errors import ReplayError
from office_tasks.replay.events import BadLine, Event, events
from office_tasks.replay.lines import MAX_LINE_BYTES, survey
from tests.replay.conftest import HEADER, SAMPLE

CREATE = "2026-01-05T09:00:00Z,T,create,ana,user,"


def bad(path):
    return [(line.number, line.why) for line in events(path) if isinstance(line, BadLine)]


def test_an_event_says_when_what_and_who(write):
    path = write("a.csv", HEADER, CREATE, "2026-01-05T10:00:00+01:00,T,assign,,agent,bob")
    at = dt.datetime(2026, 1, 5, 9, tzinfo=dt.UTC)
    assert list(events(path)) == [Event(2, at, "T", "create", "ana", ""), Event(3, at, "T", "assign", "", "bob")]


def test_columns_are_found_by_name_and_others_are_ignored(write):
    path = write(
        "a.csv",
        "state,actor_id,actor_type,assignee_id,event,task_id,occurred_at",
        "x,,user,ana,create,T,2026-01-05T09:00:00Z",
    )
    assert [event.assignee_id for event in events(path)] == ["ana"]


def test_json_lines_say_the_same_as_csv(write):
    names = HEADER.split(",")
    source = SAMPLE.read_text().splitlines()[1:]
    path = write("a.jsonl", *(json.dumps(dict(zip(names, row.split(","), strict=True))) for row in source))
    without_number = [event[1:] for event in events(SAMPLE)]
    assert [event[1:] for event in events(path)] == without_number


def test_a_gzipped_file_is_the_same_file(tmp_path):
    zipped = tmp_path / "sample.csv.gz"
    zipped.write_bytes(gzip.compress(SAMPLE.read_bytes()))
    assert list(events(zipped)) == list(events(SAMPLE))
    assert survey(zipped) == survey(SAMPLE)


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbf" + SAMPLE.read_bytes().replace(b"\n", b"\r\n"))
    assert list(events(path)) == list(events(SAMPLE))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("2026-01-05T09:00:00Z,T,create,ana,user", "has 5 fields, the header has 6"),
        ("yesterday,T,create,ana,user,", "occurred_at: 'yesterday' is no instant like 2010-03-31T14:59:42Z"),
        ("2026-01-05T09:00:00,T,create,ana,user,", "occurred_at: '2026-01-05T09:00:00' has no time zone"),
        (
            "0001-01-01T00:00:00+14:00,T,create,ana,user,",
            "occurred_at: '0001-01-01T00:00:00+14:00' is no instant like 2010-03-31T14:59:42Z",
        ),
        ("2026-01-05T09:00:00Z, ,create,ana,user,", "task_id: must not be empty or blank"),
        ("2026-01-05T09:00:00Z,T,drop,ana,user,", "event: must be create or assign, not 'drop'"),
        ("2026-01-05T09:00:00Z,T,create,ana,robot,", "actor_type: must be user or agent, not 'robot'"),
        (f"2026-01-05T09:00:00Z,{'x' * 256},create,ana,user,", "task_id: is 256 bytes of UTF-8, the limit is 255"),
        ("2026-01-05T09:00:00Z,T\0,create,ana,user,", "task_id: must not contain a NUL character"),
        ('2026-01-05T09:00:00Z,"T,create,ana,user,', "is not CSV: unexpected end of data"),
        ("2026-01-05T09:00:00Z,U,assign,ana,user,", "task_id: 'U' is not created on an earlier line"),
    ],
)
def test_a_bad_line_is_told_by_its_number_and_spoils_no_other(write, line, why):
    path = write("a.csv", HEADER, line, "", CREATE)
    assert bad(path) == [(2, why)]
    assert [event.number for event in events(path) if isinstance(event, Event)] == [4]


def test_a_task_is_created_once(write):
    assert bad(write("a.csv", HEADER, CREATE, CREATE)) == [(3, "task_id: 'T' was created on an earlier line")]


def test_a_line_that_is_not_utf8_is_bad(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(f"{HEADER}\n".encode() + b"\xff\xfe\n" + f"{CREATE}\n".encode())
    assert bad(path) == [(2, "is not UTF-8")]


def test_a_line_without_end_takes_no_memory(write):
    path = write("a.csv", HEADER, "x" * (3 * MAX_LINE_BYTES), CREATE)
    assert bad(path) == [(2, f"is longer than {MAX_LINE_BYTES} bytes")]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "is not JSON: Expecting property name enclosed in double quotes"),
        ('["{"]', "is not a JSON object"),
        ("[" * 60_000, "is nested too deep"),
        ("{}", "has no occurred_at, task_id, event, assignee_id, actor_type, actor_id"),
        (
            json.dumps({**dict.fromkeys(HEADER.split(",")), "occurred_at": 1, "task_id": "T", "event": "create"}),
            "occurred_at: must be text, not int",
        ),
    ],
)
def test_a_bad_json_line_is_told_by_its_number(write, line, why):
    good = dict(zip(HEADER.split(","), CREATE.split(","), strict=True))
    assert bad(write("a.jsonl", json.dumps(good), line)) == [(2, why)]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\n\n", "is empty"),
        ("a.csv.gz", b"occurred_at\n", "is named .gz and is not gzipped"),
        ("a.csv.gz", gzip.compress(b"x" * 9999, mtime=0)[:-9], "is damaged"),
        ("a.csv", b"occurred_at,task_id\n1,2\n", "has no column event, assignee_id, actor_type, actor_id"),
        ("a.csv", b"\xff\xff\n", "does not begin with a CSV header or a JSON object"),
    ],
)
def test_a_file_that_cannot_be_replayed_is_told_in_a_sentence(tmp_path, name, content, why):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ReplayError, match=why):
        survey(path), list(events(path))


def test_a_file_that_is_not_there_is_told_in_a_sentence(tmp_path):
    with pytest.raises(ReplayError, match="there is no file"):
        survey(tmp_path / "absent.csv")
    with pytest.raises(ReplayError, match="is no file"):
        survey(tmp_path)
