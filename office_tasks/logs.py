"""Logs: structlog, JSON when nobody watches, colours when somebody does; the standard library in the same form."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, TextIO

import structlog
from celery._state import get_current_task
from celery.app import trace
from structlog.typing import EventDict, Processor

from office_tasks.prose import watched

_TASK_ID: Final = "celery_task_id"
_TASK_NAME: Final = "celery_task_name"


class _Line(structlog.WriteLogger):
    """Writes a line, or nothing: a log that nobody reads any more is no error of whoever logs (ADM-9.4)."""

    def __init__(self, out: TextIO, name: str = "") -> None:
        super().__init__(out)
        self.name = name

    def msg(self, message: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().msg(message)

    debug = info = warning = error = critical = msg


def configure_logs(level: str, stream: TextIO | None = None) -> None:
    """Configure the logs of this process; warnings are among them (OPS-1.3).

    Args:
        level: messages under it are dropped.
        stream: where they go, a line each; None for standard error.
    """
    out = stream or sys.stderr
    # Ours go straight to the stream: by way of the standard library each would cost three times as much.
    structlog.configure(
        processors=[_without_prose, *_SHARED, *_renderers(out)],
        logger_factory=partial(_Line, out),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[_task_of_record, *_SHARED],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderers(out)],
        )
    )
    # Celery would log each result with its key and, at DEBUG, each body; what was decided is logged by its own events.
    trace.LOG_SUCCESS = "Task %(name)s[%(id)s] succeeded in %(runtime)ss"
    logging.getLogger("celery.pool").setLevel(logging.INFO)
    # At DEBUG, of each new connection: that a plain Redis knows no notifications of a hosted one's maintenance.
    logging.getLogger("redis.connection").setLevel(logging.INFO)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.captureWarnings(capture=True)


@contextlib.contextmanager
def named(task_id: str | None, task_name: str) -> Iterator[None]:
    """Have each line that is logged meanwhile carry this Celery task's name, and its id if it has one."""
    with structlog.contextvars.bound_contextvars(**_names(task_id, task_name)):
        yield


def _names(task_id: str | None, task_name: str) -> dict[str, str]:
    # What is called as a plain function has no id.
    return {**({_TASK_ID: task_id} if task_id else {}), _TASK_NAME: task_name}


def _task_of_record(_logger: Any, _method: str, line: EventDict) -> EventDict:  # noqa: ANN401 - structlog's own signature
    """Take from a line of Celery's own which task it is about: it gives that along for whoever formats it."""
    about = getattr(line["_record"], "data", None)
    if isinstance(about, dict) and "id" in about and "name" in about:
        line.setdefault(_TASK_ID, about["id"])
        line.setdefault(_TASK_NAME, about["name"])
    return line


def _task_at_work(_logger: Any, _method: str, line: EventDict) -> EventDict:  # noqa: ANN401 - structlog's own signature
    """Name the Celery task that this thread works on, before our code begins and after it ended too."""
    if _TASK_ID not in line and (task := get_current_task()):
        line.update(_names(task.request.id, task.name))
    return line


def _without_prose(logger: Any, _method: str, line: EventDict) -> EventDict:  # noqa: ANN401 - structlog's own signature
    """Show prose that stands in an id's place by its size, in our own lines; what handlers log is theirs (OPS-1.3)."""
    return watched(line) if logger.name == "office" else line


def _renderers(out: TextIO) -> tuple[Processor, ...]:
    if out.isatty():
        # structlog's own choice would print the local variables of each frame, payloads and passwords among them.
        return (structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),)
    return (structlog.processors.format_exc_info, structlog.processors.JSONRenderer())


_SHARED: Final[tuple[Processor, ...]] = (
    structlog.contextvars.merge_contextvars,
    _task_at_work,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)
