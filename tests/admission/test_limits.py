"""Every limit of what may come in: where it lies, what it says, and that nothing is written."""

from __future__ import annotations

import json

import pytest

from office_tasks import validation
from office_tasks.errors import InvalidInput
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.bare import enqueue, queue_run, spawn_run
from office_tasks.producers.creation import create_task
from office_tasks.producers.inbound import event
from office_tasks.producers.producer import Producer
from tests.support import T0, after

NUL, SURROGATE = "a\0b", "\ud800"
NAN, INFINITY = float("nan"), float("inf")
LONGEST_ID = "é" * 127 + "x"
LONGEST_KEY = "é" * 512


def nested(depth, inside=0):
    value = inside
    for _ in range(depth):
        value = [value]
    return value


def nested_objects(depth):
    value = 0
    for _ in range(depth):
        value = {"a": value}
    return value


def of_size(size):
    """Return a payload that is `size` bytes of compact JSON."""
    return {"a": "é" * ((size - 8) // 2) + "x" * ((size - 8) % 2)}


BAD_PAYLOADS = [
    (of_size(validation.MAX_PAYLOAD_BYTES + 1), "payload", "262144"),
    (nested(65), "payload", "64"),
    (nested_objects(65), "payload", "64"),
    (nested(1500), "payload", "64"),
    ({"n": NUL}, "payload", "NUL"),
    ({"a\0": 1}, "payload", "NUL"),
    ([["\0"]], "payload", "NUL"),
    ("\0", "payload", "NUL"),
    ({"x": SURROGATE}, "payload", "surrogate"),
    ({"\udfff": 1}, "payload", "surrogate"),
    ({"task_id": SURROGATE}, "payload", "surrogate"),
    ({"x": NAN}, "payload", "NaN"),
    ({"x": INFINITY}, "payload", "Infinity"),
    ([-INFINITY], "payload", "Infinity"),
    (NAN, "payload", "NaN"),
    (10**5000, "payload", "JSON"),
    ({"x": {1, 2}}, "payload", "JSON"),
    ({"x": b"bytes"}, "payload", "JSON"),
    ({1: "x"}, "payload", "text"),
    ({"task_id": "x" * 256}, "payload.task_id", "255"),
    ({"task_id": LONGEST_ID + "x"}, "payload.task_id", "255"),
]
BAD_IDENTIFIERS = [
    ("", "empty"),
    ("   ", "blank"),
    ("\t\n\u00a0\u2003", "blank"),
    ("x" * 256, "255"),
    (LONGEST_ID + "x", "255"),
    (NUL, "NUL"),
    (SURROGATE, "surrogate"),
    (None, "text"),
    (7, "text"),
    (["ana"], "text"),
    (b"ana", "text"),
]
BAD_KEYS = [
    ("   ", "blank"),
    ("\t", "blank"),
    ("\u00a0", "blank"),
    ("k\0", "NUL"),
    (SURROGATE, "surrogate"),
    (LONGEST_KEY + "k", "1024"),
    (7, "text"),
    (False, "text"),
]


def named(value):
    try:
        return ascii(value)[:25]
    except (RecursionError, ValueError):
        return "cannot-be-written"


@pytest.fixture
def refuses(acme):
    """Assert that asking is refused, names field and limit, writes nothing, and stops no later wake (ADM-8.2)."""

    def check(ask, field, limit):
        tables = ("runs", "wakes", "mutations", "events", "tasks", "seats")
        before = {table: acme.count(table) for table in tables}
        with pytest.raises(InvalidInput) as refused:
            ask(acme.engine)
        assert str(refused.value).startswith(f"{field}:")
        assert limit in str(refused.value).replace("_", "").replace(",", "")
        assert len(str(refused.value)) < 300
        assert {table: acme.count(table) for table in tables} == before
        assert acme.ask(reason=f"next_after_{acme.count('wakes')}").outcome == "queued"

    return check


@pytest.mark.parametrize(("payload", "field", "limit"), BAD_PAYLOADS, ids=named)
def test_a_payload_that_cannot_be_stored_is_refused(refuses, payload, field, limit):
    """ADM-8.2, C16: too large, too deep, NUL, surrogate, NaN, Infinity, or no JSON at all."""
    refuses(lambda engine: enqueue(engine, queue_run("w", "ana", "r", payload), instant=T0), field, limit)
    with pytest.raises(InvalidInput):
        spawn_run("w", "r1", "ana", "r", payload)


@pytest.mark.parametrize(
    "payload",
    [of_size(validation.MAX_PAYLOAD_BYTES), nested(64), nested_objects(64), {"task_id": LONGEST_ID}, 10**4000],
    ids=named,
)
def test_a_payload_at_the_limit_is_admitted(acme, payload):
    """ADM-8.2: the limits themselves are allowed."""
    answer = acme.ask(payload=payload)
    assert acme.run(answer.run_id)["payload"] == payload


def test_the_size_is_that_of_the_stored_text():
    """ADM-8.2: 256 KiB of UTF-8, however many characters that is."""
    assert len(json.dumps(of_size(1001), ensure_ascii=False, separators=(",", ":")).encode()) == 1001
    assert len(validation.payload(of_size(validation.MAX_PAYLOAD_BYTES)).encode()) == 256 * 1024


def test_a_payload_that_holds_itself_is_refused():
    """ADM-8.2: a cycle is deeper than any limit."""
    endless = []
    endless.append(endless)
    with pytest.raises(InvalidInput, match="deeper than 64"):
        validation.payload(endless)


IDENTIFIED = {
    "agent_profile_id": lambda value: lambda engine: enqueue(engine, queue_run("w", value, "r"), instant=T0),
    "reason": lambda value: lambda engine: enqueue(engine, queue_run("w", "ana", value), instant=T0),
    "task_id": lambda value: lambda engine: assign_task(engine, "m", value, "ana", instant=T0),
    "workspace_id": lambda value: lambda engine: create_task(engine, "m", value, "title", instant=T0),
}
OPTIONAL = {
    "calling_run_id": lambda value: lambda engine: enqueue(engine, spawn_run("w", value, "ana", "r"), instant=T0),
    "assignee_id": lambda value: lambda engine: assign_task(engine, "m", "T1", value, instant=T0),
    "caller_agent_id": lambda value: lambda engine: assign_task(engine, "m", "T1", "ana", value, instant=T0),
    "step_id": lambda value: lambda engine: create_task(engine, "m", "acme", "t", step_id=value, instant=T0),
}


@pytest.mark.parametrize("field", IDENTIFIED)
@pytest.mark.parametrize(("value", "limit"), BAD_IDENTIFIERS, ids=named)
def test_an_identifier_that_is_none_is_refused(refuses, field, value, limit):
    """ADM-8.2, C30: empty or blank where one is required, over 255 bytes of UTF-8, or not text."""
    refuses(IDENTIFIED[field](value), field, limit)


@pytest.mark.parametrize("field", OPTIONAL)
@pytest.mark.parametrize(("value", "limit"), [bad for bad in BAD_IDENTIFIERS if bad[0] not in ("", None)], ids=named)
def test_an_optional_identifier_is_none_or_a_good_one(refuses, field, value, limit):
    """ADM-8.2: leaving it out is allowed, a blank is not."""
    refuses(OPTIONAL[field](value), field, limit)


@pytest.mark.parametrize("agent", [LONGEST_ID, "x" * 255, "a b", "агент", "🦉", "a%:,b", "'; --"], ids=named)
def test_unicode_identifiers_are_fine(acme, agent):
    """ADM-8.2: any text of at most 255 bytes of UTF-8 that is not blank."""
    acme.execute("INSERT INTO agents (id, workspace_id, name) VALUES (:id, 'acme', '')", id=agent)
    answer = acme.ask(agent=agent, payload={"task_id": agent}, key=f"k:{agent}")
    assert acme.run(answer.run_id)["agent_profile_id"] == agent


@pytest.mark.parametrize(("key", "limit"), BAD_KEYS, ids=named)
def test_a_bad_key_is_refused(refuses, key, limit):
    """ADM-8.2, C30: blank but not empty, NUL, surrogate, over 1,024 bytes, or not text."""
    refuses(lambda engine: enqueue(engine, queue_run("w", "ana", "r", {}, key), instant=T0), "idempotency_key", limit)
    with pytest.raises(InvalidInput):
        spawn_run("w", "run", "ana", "r", {}, key)


def test_a_key_at_the_limit_is_admitted(acme):
    """ADM-8.2: 1,024 bytes of UTF-8."""
    answer = enqueue(acme.engine, queue_run("w", "ana", "r", {}, LONGEST_KEY), instant=T0)
    assert (answer["outcome"], acme.runs()[0]["idempotency_key"]) == ("queued", LONGEST_KEY)


def test_a_built_key_over_the_limit_is_refused(refuses, acme):
    """ADM-8.2: what escaping and joining make too long is refused before anything is written."""
    refuses(lambda engine: enqueue(engine, spawn_run("w", "r" * 255, "ana", "r", {}, "k" * 763)), "key", "1024")
    acme.execute("INSERT INTO agents (id, workspace_id, name) VALUES (:id, 'acme', '')", id=":" * 255)
    create_task(acme.engine, "m0", "acme", "title", task_id=":" * 255, step_id="start", instant=T0)
    refuses(lambda engine: assign_task(engine, "m", ":" * 255, ":" * 255, instant=T0), "key", "1024")


@pytest.mark.parametrize("generation", [-1, 2**63, 1.0, True, "1", [1]], ids=named)
def test_a_generation_that_is_none_is_refused(refuses, generation):
    """ADM-8.2, PRO-3.2: a malformed event is an error."""
    refuses(lambda _: event(Producer.TASK_CREATED, "T1", "ana", generation), "assignment_generation", "whole number")


@pytest.mark.parametrize("absent", [None, ""])
def test_no_key_twice_is_two_rows(acme, absent):
    """C30: None and "" are no key: two rows each."""
    for at in (T0, after(minutes=1)):
        assert enqueue(acme.engine, queue_run(f"w{at}", "ana", "r", {}, absent), instant=at)["outcome"] == "queued"
    assert [run["idempotency_key"] for run in acme.runs()] == [None, None]


def test_look_alikes_are_different_keys(acme):
    """C30, ADM-8.2: keys are compared byte for byte: nothing is normalized, trimmed or folded."""
    for n, key in enumerate(["café", "cafe\u0301", "k1", "k1 ", " k1", "K1", "\uff4b1"]):
        assert enqueue(acme.engine, queue_run(f"w{n}", "ana", f"r{n}", {}, key), instant=T0)["outcome"] == "queued"
    assert acme.count("runs") == 7
