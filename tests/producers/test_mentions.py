"""Whom a comment mentions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from office_tasks.producers.mentions import mentioned

plain = st.from_regex(r"[A-Za-z0-9_é]+([.:/+-][A-Za-z0-9_é]+)*", fullmatch=True)
bracketed = st.text(min_size=1).filter(lambda found: not set("]\n") & set(found))
between = st.sampled_from([" ", "\n", ", ", " (", "; ", "! "])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("@ana", {"ana"}),
        ("ask @ana, then @bob!", {"ana", "bob"}),
        ("@ana @ana", {"ana"}),
        ("(@ana)", {"ana"}),
        ("@ana's turn", {"ana"}),
        ("@[Ana Maria], please", {"Ana Maria"}),
        ("@agents/ana:2", {"agents/ana:2"}),
        ("mail ana@example.org or @@ana", set()),
        ("@", set()),
        ("@[]", set()),
        ("@[not\nclosed]", set()),
        ("@ana.", {"ana", "ana."}),
        ("@ana:", {"ana", "ana:"}),
        ("", set()),
    ],
)
def test_what_is_a_mention(body, expected):
    """PRO-5.2: `@id` or `@[any id]`, never inside a word; what may end a sentence is read both ways."""
    assert mentioned(body) == expected


@given(st.lists(plain, max_size=5), between)
def test_every_plain_id_is_found(ids, gap):
    """PRO-5.2: whatever stands between them, those are the mentions and there are no others."""
    assert mentioned(gap.join(f"@{one}" for one in ids)) == set(ids)


@given(bracketed, st.text())
def test_any_id_can_be_written_in_brackets(one, more):
    """PRO-5.2: blanks and punctuation too, whatever comes after it."""
    assert one in mentioned(f"@[{one}]{more}")


@given(st.text())
def test_any_text_has_some_mentions_or_none(body):
    """PRO-5.2: nothing that a comment may hold breaks the reading of it, and no mention is empty."""
    found = mentioned(body)
    assert "" not in found
    assert found == frozenset() or "@" in body


@given(st.text(st.characters(exclude_characters="@")))
def test_without_the_sign_nobody_is_mentioned(body):
    """PRO-5.2: a name alone is no mention."""
    assert mentioned(body) == frozenset()


def test_no_text_keeps_the_search_busy():
    """PRO-5.2: brackets that never close cost what their length is, not its square; the task is locked meanwhile."""
    assert mentioned("@[" * 100_000) == frozenset()
    assert mentioned("@" * 200_000 + "[" * 50_000) == frozenset()
