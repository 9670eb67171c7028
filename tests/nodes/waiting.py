"""Waiting in tests: for a condition, never for a length of time."""

from __future__ import annotations

from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

POLL = 0.02
T = TypeVar("T")


def until(condition: Callable[[], T], timeout: float = 30.0, what: str = "the condition") -> T:
    """Return the first true value of `condition`; raise `TimeoutError` naming `what` after `timeout` seconds."""
    deadline = monotonic() + timeout
    pause = Event()
    while not (value := condition()):
        if monotonic() > deadline:
            raise TimeoutError(f"{what}: not seen within {timeout} s")
        pause.wait(POLL)
    return value
