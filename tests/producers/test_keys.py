"""Keys and set digests: what makes two the same, and what does not."""

from __future__ import annotations

import hashlib
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from office_tasks import keys, reasons

ids = st.text(st.sampled_from("aB%:,25C3A2é☃"), min_size=1, max_size=6)
sets = st.sets(ids, min_size=1, max_size=6)
ARGUMENTS = {"task_id": ids, "agent_profile_id": ids, "step_id": ids, "step_transition_id": ids, "comment_id": ids,
             "blocker_ids": sets, "child_ids": sets, "failed_run_id": ids, "calling_run_id": ids, "key": ids,
             "generation": st.integers(1, 2**63 - 1)}  # fmt: skip
BUILDERS = {
    name: builder
    for name, builder in inspect.getmembers(keys, inspect.isfunction)
    if builder.__module__ == keys.__name__
    and not name.startswith("_")
    and name not in {"digest", "escape", "calling_run"}
}


def arguments(builder):
    return st.tuples(*(ARGUMENTS[name] for name in inspect.signature(builder).parameters))


def test_the_builders_are_those_of_the_contract():
    """PRO-1.4: one for each keyed row of the table of PRO-1."""
    assert set(BUILDERS) == {
        "task_assigned", "task_auto_started", "task_comment", "task_mentioned", "task_reopened_via_comment",
        "task_blockers_resolved", "task_children_completed", "agent_error", "spawned",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(BUILDERS))
@given(data=st.data())
def test_a_key_is_that_of_one_occurrence(name, data):
    """PRO-1.1, PRO-1.4: equal for two attempts at one occurrence, different for two occurrences; ids are escaped."""
    builder = BUILDERS[name]
    one, other = data.draw(arguments(builder)), data.draw(arguments(builder))
    assert (builder(*one) == builder(*other)) == (one == other)
    assert builder(*one).count(":") == len(one)


@given(data=st.data())
def test_no_two_builders_give_one_key(data):
    """PRO-1.4: whatever they are given; an assignment and an auto-start, of one reason, differ in their length."""
    built = [builder(*data.draw(arguments(builder))) for builder in BUILDERS.values()]
    assert len(set(built)) == len(built)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (keys.task_assigned("T1", "ana", 3), "task_assigned:T1:ana:3"),
        (keys.task_auto_started("T1", "ana", "s", "tr"), "task_assigned:T1:ana:s:tr"),
        (keys.task_comment("c1", "ana"), "task_comment:c1:ana"),
        (keys.task_mentioned("c1", "ana"), "task_mentioned:c1:ana"),
        (keys.task_reopened_via_comment("c1", "ana"), "task_reopened_via_comment:c1:ana"),
        (keys.agent_error("r1", "ana"), "agent_error:r1:ana"),
        (keys.spawned("r1", "k"), "agent:r1:k"),
    ],
)
def test_keys_read_as_the_contract_writes_them(key, expected):
    """PRO-1.4: what stands in the table of PRO-1 is wire format."""
    assert key == expected


def test_a_set_stands_in_its_key_as_its_digest():
    """PRO-1.5: the blocked task, the agent, the digest; the parent, the agent, the digest."""
    found = hashlib.sha256(b"a,b").hexdigest()
    assert keys.task_blockers_resolved("T1", "ana", ["b", "a"]) == f"task_blockers_resolved:T1:ana:{found}"
    assert keys.task_children_completed("T1", "ana", ["b", "a"]) == f"task_children_completed:T1:ana:{found}"


def test_the_digest_of_awkward_ids():
    """PRO-1.5: the full lowercase hex of SHA-256 over UTF-8, escaped, sorted by bytes and not by how text collates."""
    plain = "A%2CB,Z,a,%C3".replace("%C3", "é")
    assert keys.digest(["é", "a", "Z", "A,B"]) == hashlib.sha256(plain.encode()).hexdigest()
    assert len(keys.digest(["x"])) == 64


@given(sets, st.randoms())
def test_the_order_of_a_set_is_nothing(members, random):
    """PRO-1.5: same set in any order, and however often it names a member, the same digest."""
    shuffled = [*members, *members]
    random.shuffle(shuffled)
    assert keys.digest(shuffled) == keys.digest(members)


@given(sets, sets)
def test_two_sets_have_two_digests(one, other):
    """PRO-1.5, ADM-8.3: a comma inside an id makes no other set."""
    assert (keys.digest(one) == keys.digest(other)) == (one == other)


def test_an_empty_set_has_no_digest():
    """PRO-1.5: it is no occurrence."""
    with pytest.raises(ValueError, match="empty"):
        keys.digest([])


def test_the_keys_reasons_are_registered():
    """PRO-1.4: the first segment of each key but an agent's own is the reason of its wake."""
    made = {builder(*["1"] * len(inspect.signature(builder).parameters)).split(":")[0] for builder in BUILDERS.values()}
    assert made - {"agent"} <= reasons.REASONS
