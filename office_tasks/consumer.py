"""A consumer that a malformed message cannot stop, and a reading of JSON that gives no key a meaning of its own."""

from __future__ import annotations

import json
from typing import Any, Final

import structlog
from celery.worker.consumer import Consumer
from kombu.serialization import registry
from kombu.utils.json import dumps

log: Final = structlog.stdlib.get_logger("office")


class OfficeConsumer(Consumer):  # type: ignore[misc]  # Celery has no types
    """Rejects a message whose body is not `[args, kwargs, embed]`; Celery's own would exit, and so would the next."""

    def create_task_handler(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - Celery's own signature
        """Return the message handler, guarded."""
        handle = super().create_task_handler(*args, **kwargs)

        def guarded(message: Any) -> Any:  # noqa: ANN401 - a kombu message
            try:
                return handle(message)
            except (ValueError, TypeError, AttributeError, KeyError) as error:
                log.error("message_malformed", error=type(error).__name__)  # noqa: TRY400 - its text may be payload
                message.reject_log_error(_QuietLogger, (Exception,))
                return None

        return guarded


class _QuietLogger:
    @staticmethod
    def critical(*_args: Any, **_kwargs: Any) -> None:  # noqa: ANN401 - what a lost connection says is said elsewhere
        """Say nothing: the rejection was logged already."""


def read_json_plainly() -> None:
    """Decode JSON bodies as JSON: no object becomes a date or an UUID because of its keys (ADM-8.2).

    For worker processes only: it replaces the decoder of the whole process.
    """
    registry.register("json", dumps, _loads, content_type="application/json", content_encoding="utf-8")


def _loads(text: str | bytes | memoryview) -> Any:  # noqa: ANN401 - any JSON value
    return json.loads(bytes(text) if isinstance(text, memoryview) else text)
