"""A consumer that no message can stop, and a reading of JSON that gives no key a meaning of its own.

Celery's own would exit on a body that is not `[args, kwargs, embed]`, and so would the next worker; on others it would
lose a place of its pool, or write the body into its log. So a message is looked at before Celery sees it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

import structlog
from celery.exceptions import NotRegistered
from celery.worker.consumer import Consumer
from kombu.exceptions import ContentDisallowed, DecodeError
from kombu.serialization import registry
from kombu.utils.json import dumps

from office_tasks.arguments import reported
from office_tasks.errors import InvalidInput
from office_tasks.messages import check, readable_id

log: Final = structlog.stdlib.get_logger("office")

_MALFORMED: Final = (ValueError, TypeError, AttributeError, LookupError, RecursionError, DecodeError, ContentDisallowed)


class OfficeConsumer(Consumer):  # type: ignore[misc]  # Celery has no types
    """Rejects what is no message of ours, logs why, and goes on; no body ever reaches the log (ADM-8.2, ADM-9.3)."""

    def create_task_handler(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - Celery's own signature
        """Return the message handler, guarded."""
        handle = super().create_task_handler(*args, **kwargs)

        def guarded(message: Any) -> Any:  # noqa: ANN401 - a kombu message
            try:
                check(message)
                _report(message)
                return handle(message)
            except _MALFORMED as error:
                return self._reject(message, error)

        return guarded

    def on_decode_error(self, message: Any, exc: Exception) -> None:  # noqa: ANN401 - a kombu message
        """Reject a message whose body cannot be read."""
        self._reject(message, exc)

    def on_unknown_message(self, _body: Any, message: Any) -> None:  # noqa: ANN401 - Celery's own signature
        """Reject a message that names no Celery task."""
        self._reject(message, InvalidInput("names no Celery task"))

    def on_invalid_task(self, _body: Any, message: Any, exc: Exception) -> None:  # noqa: ANN401 - Celery's own signature
        """Reject a message whose headers mean nothing, such as an ETA that is no instant."""
        self._reject(message, exc)

    def on_unknown_task(self, _body: Any, message: Any, _exc: Exception) -> None:  # noqa: ANN401 - as above
        """Reject a message for a Celery task that this version does not have, and tell its caller."""
        task_id, name = message.headers["id"], message.headers["task"]
        log.error("task_unknown", celery_task_id=task_id, celery_task_name=name)
        message.reject_log_error(_QuietLogger, (Exception,))
        self._answer(task_id, NotRegistered(name))

    def _reject(self, message: Any, error: Exception) -> None:  # noqa: ANN401 - a kombu message
        # Only our own sentences are known to hold nothing of the body.
        told = error if isinstance(error, InvalidInput) else InvalidInput(f"not a message: {type(error).__name__}")
        task_id = readable_id(message)
        log.error("message_malformed", error=type(error).__name__, why=str(told), celery_task_id=task_id)
        message.reject_log_error(_QuietLogger, (Exception,))
        if task_id:
            self._answer(task_id, told)

    def _answer(self, task_id: str, error: Exception) -> None:
        """Tell the caller, who would wait for ever."""
        with suppress(Exception):  # the backend may be away; the message is dealt with
            self.app.backend.mark_as_failure(task_id, error)
        if self.event_dispatcher:
            self.event_dispatcher.send("task-failed", uuid=task_id, exception=repr(error))


def _report(message: Any) -> None:  # noqa: ANN401 - a kombu message
    # Whatever its sender wrote there: events, Flower and logs show what these headers say (OPS-1.1).
    args, kwargs, _ = message.payload
    shown = reported(message.headers["task"], args, kwargs)
    message.headers["argsrepr"], message.headers["kwargsrepr"] = shown
    # Another name for the Celery task, in its sender's words.
    message.headers["shadow"] = None


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
