"""Logs: structlog, JSON when nobody watches, colours when somebody does; the standard library in the same form."""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import Final, TextIO

import structlog
from celery.app import trace
from structlog.typing import Processor

_SHARED: Final[tuple[Processor, ...]] = (
    structlog.contextvars.merge_contextvars,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)


class _Line(structlog.WriteLogger):
    """Writes a line, or nothing: a log that nobody reads any more is no error of whoever logs (ADM-9.4)."""

    def msg(self, message: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().msg(message)

    debug = info = warning = error = critical = msg


def configure_logs(level: str, stream: TextIO | None = None) -> None:
    """Configure the logs of this process.

    Args:
        level: messages under it are dropped.
        stream: where they go, a line each; None for standard error.
    """
    out = stream or sys.stderr
    # Ours go straight to the stream: by way of the standard library each would cost three times as much.
    structlog.configure(
        processors=[*_SHARED, *_renderers(out)],
        logger_factory=lambda *_: _Line(out),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=list(_SHARED),
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderers(out)],
        )
    )
    # Celery would log each result with its key and, at DEBUG, each body; what was decided is logged by its own events.
    trace.LOG_SUCCESS = "Task %(name)s[%(id)s] succeeded in %(runtime)ss"
    logging.getLogger("celery.pool").setLevel(logging.INFO)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


def _renderers(out: TextIO) -> tuple[Processor, ...]:
    if out.isatty():
        return (structlog.dev.ConsoleRenderer(),)
    return (structlog.processors.format_exc_info, structlog.processors.JSONRenderer())
