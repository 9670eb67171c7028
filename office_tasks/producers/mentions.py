"""Whom a comment mentions: `@id`, or `@[any id]` for one with blanks or punctuation in it."""

from __future__ import annotations

import re
from typing import Final

# Not in the middle of a word: an address is no mention. An id has at most 255 bytes, and the search an end: it runs
# while the task is locked.
_MENTION: Final = re.compile(r"(?<![\w@])@(?:\[([^\]\n]{1,255})\]|([\w][\w.:/+-]*))")
_TRAILING: Final = ".:/+-"


def mentioned(body: str) -> frozenset[str]:
    """Return the ids that the text mentions; whether they are agents is for the caller to find out.

    A dot or colon that ends a sentence may belong to the id: both readings are returned.
    """
    found: set[str] = set()
    for bracketed, plain in _MENTION.findall(body):
        found |= {bracketed} if bracketed else {plain, plain.rstrip(_TRAILING)}
    return frozenset(found)
