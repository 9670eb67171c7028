"""An id, or prose that somebody put in its place: of prose only the size is told (OPS-1.1, OPS-1.3).

Ids are opaque text, so whoever swaps two arguments has a comment's words taken for an id. What is said of messages,
results and wakes - in events, in Flower, in logs, in sentences - goes through here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

_LONGEST_WORD: Final = 255
_LARGEST: Final = 2**63

# Fields in words of our own, which `shown` made fit to be read; every other holds an id, a word or a number.
_SENTENCES: Final = frozenset({"event", "error", "why"})


def is_word(value: str) -> bool:
    """Tell an id or a word from prose: no white space, at most 255 characters."""
    return len(value) <= _LONGEST_WORD and not any(map(str.isspace, value))


def shown(value: object) -> str:
    """Return a value as a sentence may repeat it: an id or a word in quotes, of anything else only what it is."""
    if not isinstance(value, str):
        return f"<{type(value).__name__}>"
    return repr(value) if is_word(value) else hidden("text", value)


def placed(name: str, value: object) -> object:
    """Return what may be shown where `name` belongs: an id, a word or a whole number; of all else name and size."""
    return value if value is None or value == "" or _is_plain(value) else hidden(name, value)


def watched(value: Any, name: str = "value") -> Any:  # noqa: ANN401 - any JSON value
    """Return a result, or the fields of a log line, as a watcher may see it; `name` is what its place is called."""
    if isinstance(value, Mapping):
        return {key: watched(each, key) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [watched(each, name) for each in value]
    return value if name in _SENTENCES else placed(name, value)


def hidden(name: str, value: object) -> str:
    """Return a name and a size in the place of a value."""
    return f"<{name}, {_size(value)}>"


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return is_word(value)
    return isinstance(value, bool) or (isinstance(value, int) and abs(value) < _LARGEST)


def _size(value: object) -> str:
    try:
        encoded = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return "no JSON"
    return f"{len(encoded.encode(errors='surrogatepass'))} bytes"
