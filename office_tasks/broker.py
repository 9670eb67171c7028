"""A look at the broker, for an operator: whether it answers, what waits in it, and which workers are alive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from celery import Celery
from kombu.connection import Connection
from kombu.utils.url import maybe_sanitize_url

from office_tasks.configuration import QUEUES

# How long workers are waited for: how many will answer nobody knows, so it is waited out to its end.
PATIENCE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Look:
    """What a look found. With an `error` the broker did not answer, and nothing else is known."""

    url: str
    error: str | None = None
    waiting: Mapping[str, int] = field(default_factory=dict)
    """By queue: how many messages no worker has taken yet."""
    workers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By worker that answered in time: the queues that it takes."""
    redis: Mapping[str, Any] | None = None
    """What Redis says of itself (INFO); None for any other broker."""

    def takers(self, queue: str) -> list[str]:
        """Return the workers that take a queue."""
        return [name for name, queues in self.workers.items() if queue in queues]


def look(app: Celery, seconds: float = PATIENCE_SECONDS) -> Look:
    """Look at the broker of `app` once; one that is away, or does not answer, costs seconds and is no error."""
    # Of several that are joined it would hide the first password alone.
    url = ";".join(map(maybe_sanitize_url, app.conf.broker_url.split(";")))
    try:
        with app.connection_for_write() as connection:
            waiting, redis = _waiting(connection), _redis(connection)
            # Last: the connection then waits for replies, and gives them as the answer to whatever is asked after it.
            workers = app.control.inspect(timeout=seconds, connection=connection).active_queues() or {}
    except Exception as error:  # noqa: BLE001 - whatever a transport raises, it is what there is to tell
        return Look(url, error=_brief(error))
    return Look(url, None, waiting, _queues(workers), redis)


def _waiting(connection: Connection) -> dict[str, int]:
    with connection.channel() as channel:
        # As Celery declares them. Redis has no empty queues: to ask only for what is there would be refused.
        return {
            queue: int(channel.queue_declare(queue=queue, durable=True, auto_delete=False).message_count)
            for queue in QUEUES
        }


def _queues(workers: Mapping[str, Any]) -> dict[str, list[str]]:
    return {name: sorted(queue["name"] for queue in queues) for name, queues in sorted(workers.items())}


def _redis(connection: Connection) -> Mapping[str, Any] | None:
    client = getattr(connection.default_channel, "client", None)
    return client.info() if client is not None and connection.transport.driver_type == "redis" else None


def _brief(error: Exception) -> str:
    """Return one line without a secret: what drivers say of a failed connection names host and port."""
    said = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {said}"[:200] if said else type(error).__name__
