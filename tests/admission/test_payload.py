"""Payloads are stored exactly as sent, and only strings name tasks and actors."""

from __future__ import annotations

import pytest

from office_tasks.producers.bare import queue_run
from tests.support import T0, Board, after

MISCHIEVOUS = {
    "__type__": "datetime",
    "__value__": "2026-01-01",
    "__reduce__": "os.system",
    "$ref": "#",
    "": 1,
    "'; DROP TABLE runs; --": ":named %s %(x)s {} \\ \u2028",
}


@pytest.mark.parametrize(
    "payload",
    [
        [],
        {},
        "text",
        "",
        "null",
        '{"task_id": "T1", "actor_type": "agent"}',
        "\\u0000",
        0,
        False,
        1.5,
        [None, [[]], {"a": [{}]}],
        {"id": 9007199254740993, "big": 10**30, "small": -(10**30)},
        10**4000,
        {"decimal": 0.1, "tiny": 5e-324, "large": 1e22},
        {"café": "cafe\u0301 🦉 ﷺ", "🗝": "\u0001\u007f\u200b"},
        MISCHIEVOUS,
    ],
    ids=lambda payload: f"{type(payload).__name__}",
)
def test_any_json_value_is_stored_as_sent(acme, payload):
    """ADM-8.1, ADM-8.2, C16: as JSONB, on the run and on the wake; big integers are exact, no key is special."""
    answer = acme.ask(payload=payload)
    assert acme.run(answer.run_id)["payload"] == payload
    assert type(acme.run(answer.run_id)["payload"]) is type(payload)
    assert acme.wakes()[0]["payload"] == payload


def test_an_absent_payload_and_null_are_stored_as_an_empty_object(acme):
    """ADM-8.1, C16: neither becomes SQL's NULL nor JSON's."""
    acme.ask(payload=None)
    [run] = acme.rows("SELECT payload::text AS written FROM runs")
    assert run == {"written": "{}"}
    assert queue_run("w", "ana", "r").payload == queue_run("w", "ana", "r", None).payload == "{}"


def test_text_is_never_parsed(acme):
    """ADM-8.1, C16: JSON encoded twice is a JSON string, and taskless."""
    answer = acme.ask(payload='{"task_id": "T1", "actor_type": "agent"}')
    run = acme.run(answer.run_id)
    assert acme.rows("SELECT jsonb_typeof(payload) AS kind FROM runs") == [{"kind": "string"}]
    assert (run["task_id"], run["task_scope"], run["actor_type"]) == (None, "", None)


@pytest.mark.parametrize(
    ("payload", "task_id", "task_scope"),
    [
        ({"task_id": "T1"}, "T1", "T1"),
        ({"task_id": " "}, " ", " "),
        ({"task_id": "42"}, "42", "42"),
        ({"task_id": ""}, None, ""),
        ({"task_id": None}, None, ""),
        ({"other": 1}, None, ""),
        ({}, None, ""),
        ([], None, ""),
        ([{"task_id": "T1"}], None, ""),
        (["task_id"], None, ""),
        ("task_id", None, ""),
        (5, None, ""),
        (True, None, ""),
        ({"task_id": 42}, None, None),
        ({"task_id": False}, None, None),
        ({"task_id": []}, None, None),
        ({"task_id": {"task_id": "T1"}}, None, None),
    ],
    ids=repr,
)
def test_which_task_a_payload_names(acme, payload, task_id, task_scope):
    """ADM-8.1: the id, or none; the scope, which is NULL when `task_id` is there and no string."""
    run = acme.run(acme.ask(payload=payload).run_id)
    assert (run["task_id"], run["task_scope"]) == (task_id, task_scope)
    asked = Board.wake(payload=payload)
    assert (asked.task_id, asked.task_scope) == (task_id, task_scope)


@pytest.mark.parametrize(
    ("payload", "actor_type"),
    [
        ({"actor_type": "agent"}, "agent"),
        ({"actor_type": ""}, ""),
        ({"actor_type": None}, None),
        ({"actor_type": 1}, None),
        ({"actor_type": ["agent"]}, None),
        ({}, None),
        (["actor_type"], None),
        ("agent", None),
    ],
    ids=repr,
)
def test_which_actor_a_payload_names(acme, payload, actor_type):
    """ADM-8.1: NULL unless a string."""
    assert acme.run(acme.ask(payload=payload).run_id)["actor_type"] == actor_type
    assert Board.wake(payload=payload).actor_type == actor_type


def test_non_objects_are_taskless(acme):
    """C16: `[]`, `"text"` and JSON encoded twice are stored as they came, and merge as taskless wakes do."""
    acme.ask(payload=[])
    assert acme.ask(after(seconds=1), payload="text").outcome == "coalesced"
    assert acme.ask(after(seconds=1), payload='{"task_id":"T1"}').outcome == "coalesced"
    assert [run["payload"] for run in acme.runs()] == ['{"task_id":"T1"}']


def test_the_columns_are_generated_by_the_schema(acme):
    """ADM-8.1: the guard is in the schema: nobody can write the three columns."""
    generated = acme.rows(
        "SELECT column_name FROM information_schema.columns "
        "WHERE table_name = 'runs' AND is_generated = 'ALWAYS' ORDER BY column_name"
    )
    assert [row["column_name"] for row in generated] == ["actor_type", "task_id", "task_scope"]


def test_a_merge_keeps_the_columns_true(acme):
    """ADM-8.1, ADM-4.2: the replaced payload's own task and actor are what the columns say after a merge."""
    first = acme.ask(T0, payload={"task_id": "T1", "actor_type": "user"})
    acme.ask(after(seconds=1), payload={"task_id": "T1", "actor_type": 7})
    assert acme.run(first.run_id)["actor_type"] is None
