"""Who is told that a run was queued, after the deciding commit. Admission itself knows no broker."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[], object]

_listeners: list[Listener] = []


def when_queued(listener: Listener) -> None:
    """Call `listener` after each run that this process queues; it must not raise."""
    _listeners.append(listener)


def tell_queued() -> None:
    """Tell everybody."""
    for listener in _listeners:
        listener()
