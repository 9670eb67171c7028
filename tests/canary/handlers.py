"""Handlers that do with the text of their payload what a handler should not."""

from __future__ import annotations

import datetime as dt
import logging
import os
import signal
import warnings
from threading import Event
from typing import Any

import structlog

from office_tasks import RetryAt
from office_tasks.execution.context import RunContext


def handle(context: RunContext) -> Any:
    """Do what the payload names with its text."""
    return globals()[context.run.payload["do"]](context.run.payload["text"])


def raise_it(text: str) -> Any:
    raise ValueError(text)


def raise_from_it(text: str) -> Any:
    try:
        raise_it(text)
    except ValueError as error:
        raise RuntimeError(f"because of {text}") from error


def exit_with_it(text: str) -> Any:
    raise SystemExit(text)


def return_it(text: str) -> Any:
    return {"said": text}


def return_no_json(text: str) -> Any:
    return {text: {text}}


def retry_it(text: str) -> Any:
    raise RetryAt(dt.datetime.now(dt.UTC) + dt.timedelta(hours=1), text)


def die(_: str) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def hang(_: str) -> Any:
    Event().wait()


def log_it(text: str) -> Any:
    """Log in each way that a handler and its libraries can; of the text only what is no secret."""
    kind = "noise" if text == "noise" else "noise of its own"
    structlog.get_logger().info(kind)
    logging.getLogger("library").info(kind)
    warnings.warn(kind, stacklevel=1)
    try:
        raise_it(kind)
    except ValueError:
        logging.getLogger("library").exception(kind)
