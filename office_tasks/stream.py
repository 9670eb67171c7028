"""Events out: a bounded Redis stream that other systems read, and nothing of ours (PRO-7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from redis import Redis

from db.outbox import Unsent

NAME: Final = "office:events"
# About so many events stay readable; a consumer that is further behind must read the board instead.
LENGTH: Final = 100_000


class EventStream:
    """The stream `office:events`. Making one opens nothing."""

    def __init__(self, url: str) -> None:
        self._redis = Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2)

    def append(self, events: Sequence[Unsent]) -> None:
        """Append the events in their order.

        Raises:
            RedisError: perhaps some were appended, perhaps none; they are appended again.
        """
        with self._redis.pipeline(transaction=True) as pipeline:
            for one in events:
                pipeline.xadd(NAME, _fields(one), maxlen=LENGTH, approximate=True)
            pipeline.execute()

    def close(self) -> None:
        """Close its connections."""
        self._redis.close()


def _fields(event: Unsent) -> dict[Any, Any]:
    return {
        "id": str(event.id),
        "type": event.type,
        "task_id": event.task_id,
        "changed": ",".join(event.changed),
        "at": event.created_at.isoformat(),
    }
