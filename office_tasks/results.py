"""What a Celery task returns: to its caller all of it, to those who watch only what may be shown (OPS-1.1, OPS-1.3).

A result names the ids that its caller gave, and what stands in an id's place may be anything.
"""

from __future__ import annotations

from collections import Counter, UserDict, UserList
from collections.abc import Iterable, Mapping
from typing import Any

from office_tasks.prose import watched


class WatchedResult(UserDict[str, Any]):
    """A result on its way from a worker: JSON for its caller, and in events and Flower what `repr` says of it."""

    def __json__(self) -> dict[str, Any]:
        """Return what is stored for the caller."""
        return self.data

    def __repr__(self) -> str:
        """Begin with the outcome, or with those of its wakes, the rarest first; then all of it, prose by its size."""
        said = ", ".join(_counted(_outcomes(self.data)))
        return f"{said} · {watched(self.data)!r}" if said else repr(watched(self.data))


class WatchedResults(UserList[Any]):
    """The results of several calls, as Celery's own `starmap`, `chunks` and `chord` return them."""

    def __json__(self) -> list[Any]:
        """Return what is stored for the caller."""
        return self.data

    def __repr__(self) -> str:
        """Show them, prose by its size."""
        return repr(watched(self.data))


def returned(found: object) -> object:
    """Return what a worker hands to Celery for what a Celery task returned."""
    if isinstance(found, Mapping):
        return WatchedResult(found)
    return WatchedResults(found) if isinstance(found, list | tuple) else found


def _outcomes(result: Mapping[str, Any]) -> Iterable[str]:
    """Yield the outcome of each wake, or of the result that is one; never what came in from outside."""
    for each in result.get("wakes", [result]):
        if isinstance(each, Mapping) and "outcome" in each:
            yield each["outcome"]


def _counted(outcomes: Iterable[str]) -> Iterable[str]:
    for outcome, number in sorted(Counter(outcomes).items(), key=lambda each: each[1]):
        yield outcome if number == 1 else f"{number} {outcome}"
