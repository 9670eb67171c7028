"""The walk's comparison can fail: what it lets pass, and what it does not."""

from __future__ import annotations

import pytest

from tests.documents.matching import Ids

ONE, TWO, OTHER = (f"01a22a93-9090-77a5-b4f7-45526aae74f{digit}" for digit in "123")


def test_instants_ids_and_durations_pass():
    ids = Ids()
    told = f"run {ONE} was queued at 2026-01-01 10:00:00, 3 s ago"
    assert ids.differ(told, f"run {OTHER} was queued at 2027-02-03 11:22:33, 99 s ago") == ""
    assert ids.put_into(f"office run show {ONE}") == f"office run show {OTHER}"


@pytest.mark.parametrize(
    ("told", "seen"),
    [
        ("2 queued", "3 queued"),
        ("one\ntwo", "one"),
        ("one", "one\ntwo"),
        ("...\ntwo", "one\nthree"),
        (f"{ONE} {ONE}", f"{ONE} {TWO}"),
    ],
    ids=["a number", "a line less", "a line more", "not within the rest", "an id for two"],
)
def test_all_else_does_not(told, seen):
    assert Ids().differ(told, seen) != ""


def test_the_rest_may_be_left_out():
    assert Ids().differ("one\n...\nfour\n...", "one\ntwo\nthree\nfour\nfive") == ""


def test_an_id_that_nothing_showed_is_told():
    with pytest.raises(LookupError, match=ONE):
        Ids().put_into(f"office run show {ONE}")
