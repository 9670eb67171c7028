"""The caller's side: sends by name, publishes raw bodies, and reads what came of them."""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any

from celery import Celery
from celery.result import AsyncResult
from redis import Redis

from tests.support import Board

QUEUE = "admission"
LONG = 45


class Caller:
    """Sends to the queue that admission consumes."""

    def __init__(self, app: Celery, redis: Redis, board: Board) -> None:
        self.app = app
        self.redis = redis
        self.board = board

    def send(self, name: str, *args: Any, message_id: str | None = None, **kwargs: Any) -> AsyncResult:
        """Send `office.<name>` by its name."""
        return self.app.send_task(f"office.{name}", args=args, kwargs=kwargs, task_id=message_id)

    def ask(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Send and wait for the result."""
        return self.send(name, *args, **kwargs).get(timeout=LONG)

    def error(self, name: str, *args: Any, **kwargs: Any) -> BaseException:
        """Send and return the error that the caller gets."""
        return self.error_of(self.send(name, *args, **kwargs))

    @staticmethod
    def error_of(result: AsyncResult, timeout: float = LONG) -> BaseException:
        """Wait for a failure and return it."""
        found = result.get(timeout=timeout, propagate=False)
        assert isinstance(found, BaseException), found
        return found

    def push(
        self,
        body: Any,
        *,
        headers: Any = None,
        content_type: str = "application/json",
        redelivered: bool = False,
    ) -> AsyncResult:
        """Publish a raw message: `body` as it is (bytes, text) or as JSON, `headers` over those of `queue_run`."""
        given = headers or {}
        message_id = given.get("id", str(uuid.uuid4()))
        encoded = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
        delivery = {"exchange": "", "routing_key": QUEUE, **({"redelivered": True} if redelivered else {})}
        envelope = {
            "body": base64.b64encode(encoded).decode(),
            "content-encoding": "utf-8",
            "content-type": content_type,
            "headers": {"task": "office.queue_run", "id": message_id, "retries": 0, **given},
            "properties": {
                "correlation_id": message_id,
                "delivery_mode": 2,
                "delivery_info": delivery,
                "priority": 0,
                "body_encoding": "base64",
                "delivery_tag": str(uuid.uuid4()),
            },
        }
        self.redis.lpush(QUEUE, json.dumps(envelope))
        return self.app.AsyncResult(str(message_id))


def events(log: str, name: str) -> list[dict[str, Any]]:
    """Return the log's structured lines of one event."""
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == name]


def retries(log: str, task_id: str) -> list[float]:
    """Return the gaps, in seconds, after which a message was to be tried again."""
    found = [line for line in log.splitlines() if task_id in line and "retry: Retry in " in line]
    return [float(line.partition("Retry in ")[2].partition("s")[0]) for line in found]
