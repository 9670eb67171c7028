"""The user's handler: whatever it is, returns or raises, its run is in a clear state and the worker lives (REC-2.4)."""

from __future__ import annotations

import asyncio
import math
import os

import pytest
from celery.exceptions import SoftTimeLimitExceeded

from db.endings import Ending
from office_tasks.execution.context import AgentFacts, RetryAt, TaskFacts
from office_tasks.execution.end import end
from office_tasks.execution.execute import execute_next
from office_tasks.execution.handler import MAX_ERROR
from office_tasks.validation import MAX_PAYLOAD_BYTES
from tests.execution.handlers import raising
from tests.execution.seen import is_quiet
from tests.support import T0

HERE = "tests.execution"


def test_what_a_handler_is_given(board, queue, on_board, execute):
    """REC-2.4: the run as it was asked for, the task and the agent as they stand, the session, the attempt."""
    on_board("T1", status="in_progress")
    run_id = queue(payload={"task_id": "T1", "x": [1, None]}, reason="task_comment", key="K")
    given = []
    execute(given.append)
    [context] = given
    assert context.run.id == run_id
    assert (context.run.reason, context.run.idempotency_key, context.run.coalesced_count) == ("task_comment", "K", 1)
    assert (context.run.payload, context.run.requested_at) == ({"task_id": "T1", "x": [1, None]}, T0)
    assert context.agent == AgentFacts("ana", "acme", "", "worker")
    assert context.task == TaskFacts("T1", "a task", "in_progress", "", "start", None, None, "ana")
    assert (context.attempt, context.cancelled()) == (1, False)
    assert context.session.id == board.run(run_id)["session_id"]


def test_the_default_handler_finishes(board, queue, virtual):
    """REC-2.4: the system runs out of the box."""
    run_id = queue()
    assert execute_next(virtual, "office_tasks.execution.handler:log_and_finish").result == "finished"
    assert board.run(run_id)["result"] == {"handled_by": "log_and_finish"}


def test_nothing_to_do(virtual):
    """REC-2.6: a signal too many finds nothing, and loads no handler."""
    assert execute_next(virtual, "nowhere:f") is None


LARGE = "x" * (MAX_PAYLOAD_BYTES - 2)
RESULTS = [None, True, 0, -1.5, "", "ä𝄞", [], {}, {"a": [1, {"b": None}]}, LARGE, (1, 2), 10**400]


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
def test_any_json_is_kept_as_the_result(board, queue, execute, result):
    """REC-2.4: as it was returned; up to 256 KiB."""
    run_id = queue()
    assert execute(lambda _context: result).result == "finished"
    row = board.run(run_id)
    assert (row["status"], row["error"]) == ("finished", None)
    assert row["result"] == (list(result) if isinstance(result, tuple) else result)


def test_none_is_json_null_and_not_no_result(board, queue, execute):
    """REC-2.4: a run that finished has a result, if only `null`."""
    queue()
    execute(lambda _context: None)
    assert board.rows("SELECT jsonb_typeof(result) AS kind FROM runs") == [{"kind": "null"}]


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def circular():
    value = {}
    value["self"] = value
    return value


class Evil(dict):
    def values(self):
        raise RuntimeError("no values today")


class Leaving(dict):
    def values(self):
        raise SystemExit(5)


def doubled(times):
    value = []
    for _ in range(times):
        value = [value, value]
    return value


UNSTORABLE = {
    "object": (object(), "cannot be stored as JSON"),
    "set": ({1}, "cannot be stored as JSON"),
    "bytes": (b"x", "cannot be stored as JSON"),
    "nan": (math.nan, "cannot be stored as JSON"),
    "infinity": ({"x": [math.inf]}, "cannot be stored as JSON"),
    "too large": ("x" * (MAX_PAYLOAD_BYTES - 1), "the limit is 262144"),
    "nul": ({"x": "a\0b"}, "NUL character"),
    "nul in a key": ({"a\0b": 1}, "NUL character"),
    "surrogate": ("\ud800", "lone surrogate"),
    "nested": (nested(65), "nested deeper than 64"),
    "circular": (circular(), "nested deeper than 64"),
    "number as key": ({1: 2}, "keys of an object must be text"),
    "huge number": (10**5_000, "cannot be stored as JSON"),
    "evil": (Evil(a=1), "no values today"),
    "leaving": (Leaving(a=1), "SystemExit: 5"),
    "shared without end": (doubled(60), "longer than 262144 bytes"),
}


def _retried(board, run_id):
    row = board.run(run_id)
    assert (row["status"], row["attempt"], row["result"], row["finished_at"]) == ("queued", 1, None, None)
    assert row["scheduled_retry_at"] > T0
    assert is_quiet(row)
    return row["error"]


@pytest.mark.parametrize("what", UNSTORABLE)
def test_what_cannot_be_stored_is_a_failed_attempt(board, queue, execute, what):
    """REC-2.4, issue "bad input": named in the run's error, tried again like any failure."""
    result, named = UNSTORABLE[what]
    run_id = queue()
    assert execute(lambda _context: result).result == "retried"
    assert named in _retried(board, run_id)


PATHS = {
    f"{HERE}.nowhere:f": "cannot be imported: ModuleNotFoundError: No module named 'tests.execution.nowhere'",
    "nowhere.at.all:f": "cannot be imported: ModuleNotFoundError",
    f"{HERE}.handlers:missing": "cannot be imported: AttributeError",
    f"{HERE}.handlers:NO_FUNCTION": "is no function but int",
    f"{HERE}.handlers": "is no function but module",
    f"{HERE}.broken_import:f": "cannot be imported: RuntimeError: the settings of this module are missing",
    f"{HERE}.exiting_import:f": "SystemExit: no licence",
    "not a path": "cannot be imported: ValueError",
    "": "cannot be imported: ValueError",
    ":": "cannot be imported: ValueError",
}


@pytest.mark.parametrize("path", PATHS)
def test_a_handler_that_cannot_be_had_fails_the_attempt(board, queue, virtual, path):
    """REC-2.4, issue "bad input": the run says which path, and what is wrong with it; it is tried again."""
    run_id = queue()
    assert execute_next(virtual, path).result == "retried"
    error = _retried(board, run_id)
    assert PATHS[path] in error
    assert path in error


class Rude(Exception):
    def __str__(self):
        raise RuntimeError("I will not say")


class Mute(Exception):
    def __str__(self):
        raise SystemExit(4)


class Halfway(RetryAt):
    def __init__(self):
        pass


RAISED = {
    "plain": (RuntimeError("no luck"), "RuntimeError: no luck"),
    "silent": (RuntimeError(), "RuntimeError"),
    "nul": (ValueError("a\0b"), "ValueError: ab"),
    "surrogate": (ValueError("a\ud800b"), "ValueError: a?b"),
    "huge": (ValueError("x" * 10**6), ("ValueError: " + "x" * 10**6)[:MAX_ERROR]),
    "rude": (Rude(), "Rude"),
    "mute": (Mute(), "Mute"),
    "retry without a time": (Halfway(), "Halfway"),
    "a time limit of its own": (SoftTimeLimitExceeded(), "SoftTimeLimitExceeded: SoftTimeLimitExceeded()"),
    "exit": (SystemExit(), "SystemExit"),
    "exit 3": (SystemExit(3), "SystemExit: 3"),
    "memory": (MemoryError(), "MemoryError"),
    "recursion": (RecursionError("deep"), "RecursionError: deep"),
    "keyboard": (KeyboardInterrupt(), "KeyboardInterrupt"),
    "generator": (GeneratorExit(), "GeneratorExit"),
    "asyncio": (asyncio.CancelledError(), "CancelledError"),
    "group": (ExceptionGroup("several", [ValueError("1")]), "ExceptionGroup: several (1 sub-exception)"),
}


@pytest.mark.parametrize("what", RAISED)
def test_whatever_it_raises_is_a_failed_attempt(board, queue, execute, what):
    """REC-2.4, REC-2.7, issue "bad input": kind and sentence, fit to be stored and at most 2,000 characters."""
    error, said = RAISED[what]
    run_id = queue()
    assert execute(raising(error)).result == "retried"
    assert _retried(board, run_id) == said


def test_a_child_that_a_handler_forks_ends_nothing(board, queue, execute):
    """REC-2.4: it comes back into our code as a second self, and goes no further."""
    run_id, children = queue(), []

    def fork(_context):
        if child := os.fork():
            children.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            return "parent"
        return "child"

    assert execute(fork).result == "finished"
    assert (board.run(run_id)["result"], children) == ("parent", [1])


def test_a_handler_that_ends_its_own_run_loses(board, queue, execute, virtual):
    """REC-2.1, REC-2.4: each run settles once, whoever does it."""
    run_id = queue()

    def meddle(_context):
        from db.claims import Claimed

        run = Claimed(*(board.run(run_id)[name] for name in Claimed._fields))
        assert end(virtual, run, Ending("finish", result='"mine"')).result == "finished"
        return "theirs"

    assert execute(meddle).result == "lost"
    assert board.run(run_id)["result"] == "mine"


def test_a_handler_may_use_the_office(board, queue, on_board, execute):
    """REC-2.4: it runs in no transaction of ours: what it asks for is admitted at once, and executed after it."""
    on_board("T1")
    queue(task="T1")
    woken = []
    execute(lambda _context: woken.append(board.ask(T0, agent="bob", reason="task_comment").run_id))
    given = []
    execute(given.append)
    assert [context.run.id for context in given] == woken
