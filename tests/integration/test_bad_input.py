"""Bad input and hostile messages: a typed error for the caller, no retry, and the worker goes on with the next."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from office_tasks import errors
from tests.integration.caller import events
from tests.nodes.waiting import until

DEEP = json.loads("[" * 65 + "]" * 65)

# (what the caller sends, words of the sentence): each row of ADM-8.2.
REFUSED = {
    "too large": (("ana", "r", "x" * 262_143), ("payload", "262144")),
    "too deep": (("ana", "r", DEEP), ("payload", "64")),
    "too deep for the pool": (("ana", "r", json.loads("[" * 480 + "]" * 480)), ("nested deeper than 128",)),
    "NUL in a value": (("ana", "r", {"n": "a\0b"}), ("payload", "NUL")),
    "NUL in a name": (("ana", "r", {"a\0": 1}), ("payload", "NUL")),
    "lone surrogate": (("ana", "r", {"x": "\ud800"}), ("payload", "surrogate")),
    "NaN": (("ana", "r", {"x": float("nan")}), ("payload", "NaN")),
    "Infinity": (("ana", "r", [float("inf")]), ("payload", "Infinity")),
    "empty agent": (("", "r"), ("agent_profile_id", "empty")),
    "blank agent": ((" \t", "r"), ("agent_profile_id", "blank")),
    "empty reason": (("ana", ""), ("reason", "empty")),
    "agent is a number": ((7, "r"), ("agent_profile_id", "text")),
    "agent too long": (("é" * 128, "r"), ("agent_profile_id", "256", "255")),
    "agent with NUL": (("a\0", "r"), ("agent_profile_id", "NUL")),
    "task id too long": (("ana", "r", {"task_id": "t" * 256}), ("payload.task_id", "255")),
    "key too long": (("ana", "r", None, "k" * 1025), ("idempotency_key", "1024")),
    "blank key": (("ana", "r", None, "  "), ("idempotency_key", "blank")),
    "key with NUL": (("ana", "r", None, "k\0"), ("idempotency_key", "NUL")),
}

# Bodies and headers that are no message of ours.
MALFORMED = {
    "an object": ({"a": 1}, {}),
    "text": ('"text"', {}),
    "a number": ("5", {}),
    "null": ("null", {}),
    "two parts": ([[], {}], {}),
    "args no list": ([5, {}, {}], {}),
    "kwargs no object": ([[], [], {}], {}),
    "embed no object": ([[], {}, [1]], {}),
    "callbacks no signatures": ([[], {}, {"callbacks": [5]}], {}),
    "no JSON": ("{", {}),
    "empty": ("", {}),
    "no UTF-8": (b"\xff\xfe", {}),
    "5,000 deep": ("[" * 5000 + "]" * 5000, {}),
    "no task": ([["ana", "r"], {}, {}], {"task": None}),
    "task a list": ([["ana", "r"], {}, {}], {"task": ["a"]}),
    "no id": ([["ana", "r"], {}, {}], {"id": None}),
    "id a number": ([["ana", "r"], {}, {}], {"id": 5}),
    "id with NUL": ([["ana", "r"], {}, {}], {"id": "a\0"}),
    "id too long": ([["ana", "r"], {}, {}], {"id": "i" * 300}),
    "eta no instant": ([["ana", "r"], {}, {}], {"eta": "soon"}),
    "one time limit": ([["ana", "r"], {}, {}], {"timelimit": [1]}),
    "stamps no object": ([["ana", "r"], {}, {}], {"stamps": 5, "stamped_headers": ["x"]}),
    "retries no number": ([["ana", "r"], {}, {}], {"retries": "many"}),
    "our header no object": ([["ana", "r"], {}, {}], {"office_retries": "many"}),
    "unknown compression": ([["ana", "r"], {}, {}], {"compression": "zork"}),
}

_TAG = {"delivery_tag": "tag", "delivery_info": {"exchange": "", "routing_key": "admission"}}
# What a Celery that works never puts into a queue.
NO_ENVELOPES = {
    "no JSON": b"garbage canary-91c0",
    "no UTF-8": b"\xff\xfe canary-91c0",
    "a number": b"5",
    "a list": b"[1, 2, 3]",
    "nothing": b"",
    "too deep": b"[" * 100_000,
    "an empty object": b"{}",
    "no delivery tag": json.dumps({"body": "", "properties": {"delivery_info": _TAG["delivery_info"]}}),
    "a delivery tag that is none": json.dumps({"body": "", "properties": {**_TAG, "delivery_tag": {"a": 1}}}),
    "no exchange": json.dumps({"body": "", "properties": {**_TAG, "delivery_info": {}}}),
    "no base64": json.dumps({"body": "canary-91c0 !", "properties": {**_TAG, "body_encoding": "base64"}}),
    "an unknown encoding": json.dumps({"body": "canary-91c0", "properties": {**_TAG, "body_encoding": "zork"}}),
}

# What a codec that gives keys a meaning would turn into something else, and numbers beyond a double.
EXACT = [
    {"__type__": "datetime", "__value__": "2026-01-01T00:00:00"},
    {"x": {"__type__": "uuid", "__value__": {"hex": "0" * 32}}},
    {"__type__": "decimal", "__value__": "1.10"},
    {"__type__": 5, "__value__": []},
    {"id": 9007199254740993, "big": 10**30},
    {"é": "e\u0301", "emoji": "\U0001f600"},
    [],
    "text",
    '{"task_id": "T1"}',
    0,
    False,
]


class Touch:
    """Once it is read, pickled, there is a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.office_worker(concurrency=1)
def test_bad_input_is_a_typed_error_and_the_worker_goes_on(worker, caller, subtests):
    """ADM-8.2, C16, C30: each row through a real worker: InvalidInput, field and limit named, nothing written."""
    for name, (arguments, words) in REFUSED.items():
        with subtests.test(name):
            error = caller.error_of(caller.push([list(arguments), {}, {}]))
            assert type(error) is errors.InvalidInput
            assert all(word in str(error) for word in words), error
    assert caller.board.wakes() == caller.board.runs() == []
    assert "retry:" not in worker.logs()
    assert caller.ask("queue_run", "ana", "manual_resume")["outcome"] == "queued"


@pytest.mark.office_worker(concurrency=1)
def test_hostile_messages_stop_no_worker(worker, caller, subtests, tmp_path):
    """ADM-8.2, R03, R05: what is no message of ours is rejected; a pool of one still has its one place after each."""
    process = worker.container._container.pid
    for number, (name, (body, headers)) in enumerate(MALFORMED.items(), 1):
        with subtests.test(name):
            message = caller.push(body, headers=headers)
            assert caller.ask("queue_run", "ana", f"after-{number}")["outcome"] == "queued"
            # Whoever left a readable id is told, instead of waiting for ever.
            assert "id" in headers or type(caller.error_of(message)) is errors.InvalidInput
            assert len(events(worker.logs(), "message_malformed")) == number
    with subtests.test("pickle"):
        harm = pickle.dumps([["ana", "pickled", Touch(tmp_path / "unpickled")], {}, {}])
        caller.push(harm, content_type="application/x-python-serialize")
        assert caller.ask("queue_run", "ana", "after-pickle")["outcome"] == "queued"
        assert events(worker.logs(), "message_malformed")[-1]["error"] == "ContentDisallowed"
        assert list(tmp_path.glob("unpickled")) == []
    with subtests.test("unknown task"):
        error = caller.error_of(caller.push([[], {}, {}], headers={"task": "office.zork"}))
        assert type(error).__name__ == "NotRegistered"
    for arguments in (["ana"], ["ana"] * 9):
        with subtests.test("wrong arity", given=len(arguments)):
            error = caller.error_of(caller.push([arguments, {}, {}]))
            assert type(error) is errors.InvalidInput
            assert "office.queue_run cannot be called so: " in str(error)
    assert caller.ask("queue_run", "ana", "last")["outcome"] == "queued"
    assert "pickled" not in {run["reason"] for run in caller.board.runs()}
    assert worker.container._container.pid == process
    assert worker.container.status == "running"
    until(lambda: caller.redis.hlen("unacked") == 0, what="nothing left unacknowledged")
    assert caller.redis.llen("admission") == 0
    assert "retry:" not in worker.logs()


@pytest.mark.office_worker(concurrency=1)
def test_what_is_no_envelope_stops_no_worker(worker, caller, subtests):
    """ADM-8.2, R05: whatever lies in the queue, or is broadcast, is dropped; the log does not repeat it."""
    process = worker.container._container.pid
    for number, (name, raw) in enumerate(NO_ENVELOPES.items(), 1):
        with subtests.test(name):
            caller.redis.lpush("admission", raw)
            assert caller.ask("queue_run", "ana", f"after-{number}")["outcome"] == "queued"
            assert len(events(worker.logs(), "message_malformed")) == number
    caller.redis.publish("/0.celery.pidbox", "garbage canary-91c0")
    assert caller.ask("queue_run", "ana", "last")["outcome"] == "queued"
    assert worker.container._container.pid == process
    assert worker.container.status == "running"
    assert "canary-91c0" not in worker.logs()
    until(lambda: caller.redis.hlen("unacked") == 0, what="nothing left unacknowledged")


@pytest.mark.office_worker(concurrency=1)
def test_payloads_arrive_exactly(worker, caller, subtests):
    """ADM-8.1, ADM-8.2, C16: no key is special to the message format, no text is parsed, big integers are exact."""
    for number, payload in enumerate(EXACT):
        with subtests.test(payload=repr(payload)):
            sent = caller.push([["ana", f"exact-{number}", payload], {}, {}])
            run_id = sent.get(timeout=30)["run_id"]
            (row,) = caller.board.rows("SELECT payload::text AS stored, task_id FROM runs WHERE id = :id", id=run_id)
            assert json.loads(row["stored"]) == payload
            assert type(json.loads(row["stored"])) is type(payload)
            assert row["task_id"] is None
    for number, absent in enumerate(([], [None])):
        with subtests.test(absent=absent):
            run_id = caller.push([["ana", f"absent-{number}", *absent], {}, {}]).get(timeout=30)["run_id"]
            assert caller.board.rows("SELECT payload FROM runs WHERE id = :id", id=run_id) == [{"payload": {}}]
