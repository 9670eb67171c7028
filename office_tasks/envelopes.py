"""What lies in a queue of the broker and is not even an envelope is dropped, with a line in the log.

Kombu would raise where it takes it from Redis, outside of whatever a consumer guards, and the worker would end. For
worker processes only: the transport of the whole process is replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from queue import Empty
from typing import Any, Final, ParamSpec, TypeVar

import structlog
from kombu.transport import redis, virtual
from kombu.utils.json import loads

log: Final = structlog.stdlib.get_logger("office")

_UNREADABLE: Final = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
_P = ParamSpec("_P")
_R = TypeVar("_R")


class _NoEnvelopeError(Exception):
    """Raised for what is none; it says of what kind the failure was, never what stood there."""


def drop_what_is_none() -> None:
    """Have this process's Redis transport survive whatever was put into a queue (ADM-8.2, R05)."""
    redis.loads = _readable(loads)  # type: ignore[attr-defined]  # its own copy of the name
    redis.Transport.Channel = _Channel


def _readable(read: Callable[_P, _R]) -> Callable[_P, _R]:
    @wraps(read)
    def attempt(*args: _P.args, **options: _P.kwargs) -> _R:
        try:
            return read(*args, **options)
        except _UNREADABLE as error:
            raise _NoEnvelopeError(type(error).__name__) from None

    return attempt


def _or_nothing(take: Callable[_P, _R]) -> Callable[_P, _R]:
    @wraps(take)
    def attempt(*args: _P.args, **options: _P.kwargs) -> _R:
        try:
            return take(*args, **options)
        except _NoEnvelopeError as error:
            kind = str(error)
        log.error("message_malformed", error=kind, why="no envelope of a message", celery_task_id=None)
        raise Empty

    return attempt


class _Message(virtual.Message):
    @_readable
    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[no-untyped-call]  # Kombu has no types
        # What Kombu reads when it notes that the message is unacknowledged.
        if not isinstance(self.delivery_tag, str):
            raise TypeError("the delivery tag is no text")
        self._whence = self.delivery_info["exchange"], self.delivery_info["routing_key"]


class _Channel(redis.Channel):
    """Kombu's, guarded at each way that a message comes."""

    Message = _Message

    @_or_nothing
    def _get(self, *args: object) -> Any:  # noqa: ANN401 - Kombu's own signatures
        return super()._get(*args)  # type: ignore[no-untyped-call]

    @_or_nothing
    def _brpop_read(self, **options: object) -> Any:  # noqa: ANN401 - as above
        return super()._brpop_read(**options)  # type: ignore[no-untyped-call]

    @_or_nothing
    def _receive_one(self, *args: object) -> Any:  # noqa: ANN401 - as above
        return super()._receive_one(*args)  # type: ignore[no-untyped-call]
