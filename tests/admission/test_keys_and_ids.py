"""Keys that cannot collide, and ids that sort by time."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from office_tasks import keys
from office_tasks.ids import new_id
from office_tasks.producers.bare import enqueue, queue_run, spawn_run
from tests.admission import source
from tests.support import T0, after

ids = st.text(alphabet=st.sampled_from("a%:,25C3A2é"), min_size=1, max_size=6)


def test_what_is_escaped():
    """ADM-8.3: `%`, `:` and `,` in an id are escaped, and nothing else is."""
    assert keys.escape("a%b:c,d é/\\#") == "a%25b%3Ac%2Cd é/\\#"
    assert keys.task_assigned("T:1", "a%", 3) == "task_assigned:T%3A1:a%25:3"
    assert keys.spawned("r,1", "a:b") == "agent:r%2C1:a%3Ab"


@given(st.tuples(ids, ids, st.integers(0, 99)), st.tuples(ids, ids, st.integers(0, 99)))
def test_different_assignments_give_different_keys(one, other):
    """ADM-8.3: no two different tuples give one key."""
    assert (keys.task_assigned(*one) == keys.task_assigned(*other)) == (one == other)


@given(st.tuples(ids, ids), st.tuples(ids, ids))
def test_different_spawns_give_different_keys(one, other):
    """ADM-8.3, PRO-1.6: the same literal from two runs does not collide."""
    assert (keys.spawned(*one) == keys.spawned(*other)) == (one == other)


@given(ids, ids)
def test_a_spawned_key_tells_its_run(run, key):
    """ADM-8.3: read back as it was given, whatever was escaped."""
    assert keys.calling_run(keys.spawned(run, key)) == run
    assert keys.calling_run(keys.task_comment(run, key)) is None


def test_a_shifted_separator_makes_another_occurrence(acme):
    """ADM-8.3: run `a` with key `b:c` and run `a:b` with key `c` are two rows."""
    for n, (run, key) in enumerate([("a", "b:c"), ("a:b", "c"), ("a%3Ab", "c")]):
        answer = enqueue(acme.engine, spawn_run(f"w{n}", run, "ana", "r", {}, key), instant=after(minutes=n))
        assert answer["outcome"] == "queued"
    assert acme.count("runs") == 3


def test_keys_are_built_in_one_module():
    """ADM-8.3, PRO-1.4: nobody formats a key by hand."""
    elsewhere = [
        where
        for where, tree in source.modules("office_tasks", "recovery")
        if where not in ("office_tasks/keys.py", "office_tasks/reasons.py")
        and any(text.startswith(("task_assigned:", "task_assigned:{}", "agent:")) for text in source.strings(tree))
    ]
    assert elsewhere == []


def test_run_ids_are_time_ordered(acme):
    """ADM-8.3: run ids are UUIDs of version 7, so later rows sort later."""
    for n in range(5):
        acme.ask(after(minutes=n))
    found = [run["id"] for run in acme.runs()]
    assert {run_id.version for run_id in found} == {7}
    assert found == sorted(found)
    made = [new_id() for _ in range(1000)]
    assert made == sorted(made)
    assert len(set(made)) == 1000


def test_wake_ids_are_text(acme):
    """ADM-8.3: a bare wake's is the id that its message has."""
    assert enqueue(acme.engine, queue_run("a message#id ☃", "ana", "r"), instant=T0)["wake_id"] == "a message#id ☃"
    assert [wake["id"] for wake in acme.wakes()] == ["a message#id ☃"]


def test_a_plain_call_has_a_new_wake_id_each_time(office, board):
    """ADM-8.3: a new UUIDv7 for a plain function call."""
    from office_tasks import queue_run as task

    first, second = (task("ana", reason)["wake_id"] for reason in ("a", "b"))
    assert first != second
    assert {uuid.UUID(first).version, uuid.UUID(second).version} == {7}


def test_a_mutations_wakes_are_numbered(office, board):
    """ADM-8.3: `<task id>#<n>`, in a fixed order."""
    from office_tasks import create_task

    result = create_task("acme", "title", step_id="start", assignee_id="ana")
    assert [wake["wake_id"] for wake in result["wakes"]] == [f"{result['mutation_id']}#1"]
