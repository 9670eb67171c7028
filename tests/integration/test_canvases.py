"""Celery's own ways of sending several calls as one: each gets all results, once (ADM-7.2)."""

from __future__ import annotations

import pytest
from celery import chain, chord, chunks, group, xstarmap

LONG = 60


def queued(n):
    """Return the arguments of a wake that is queued, with prose for its key."""
    return ["ana", f"custom_{n}", {"n": n}, f"key {n}"]


@pytest.fixture
def ask(caller):
    """Return a function that makes the signature of a call: `ask("queue_run", *arguments)`."""
    return lambda name, *arguments: caller.app.signature(f"office.{name}", arguments, immutable=True)


def kinds(ask, app):
    calls = [ask("queue_run", *queued(n)) for n in range(3)]
    listed = app.signature("celery.accumulate")
    return {
        "group": group(calls, app=app),
        "chord": chord(calls, listed, app=app),
        "starmap": xstarmap(ask("queue_run"), [queued(n) for n in range(3)], app=app),
    }


@pytest.mark.parametrize("kind", ["group", "chord", "starmap"])
def test_the_results_of_all_calls(worker, caller, ask, kind):
    """ADM-7.2: as each of them returned its own, with the key as it was given; each change is made once."""
    found = kinds(ask, caller.app)[kind].apply_async().get(timeout=LONG)
    found = found[0] if kind == "chord" else found
    assert sorted((one["outcome"], one["key"]) for one in found) == [
        ("queued", "key 0"),
        ("queued", "key 1"),
        ("queued", "key 2"),
    ]
    assert caller.board.count("runs") == 3


def test_chunks_and_a_chain(worker, caller, ask):
    """ADM-7.2: a list of lists; in a chain each call has its own arguments, and the last result is the chain's."""
    many = chunks(ask("queue_run"), [queued(n) for n in range(3)], 2).set(app=caller.app).group()
    assert [len(part) for part in many.apply_async().get(timeout=LONG)] == [2, 1]
    last = chain(ask("queue_run", *queued(7)), ask("queue_run", *queued(7)), app=caller.app)
    assert last.apply_async().get(timeout=LONG)["outcome"] == "deduped"
