"""Messages to the office's Celery tasks, carried out where they are sent: no broker, no worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from celery import Celery
from celery.backends.cache import CacheBackend
from kombu.exceptions import OperationalError

from office_tasks import app

OURS: Final = ("office.", "recovery.")
RETRIES: Final = 10


def divert(patch: pytest.MonkeyPatch) -> None:
    """Have Celery carry them out eagerly and keep their results in memory, until `patch` is undone."""
    app.loader.import_default_modules()
    patch.setitem(app.conf, "task_always_eager", True)
    patch.setitem(app.conf, "task_store_eager_result", True)
    for task in app.tasks.values():  # each has read its configuration already
        patch.setattr(task, "store_eager_result", True)
        # Eager retries follow at once, each inside the one before: a database that is gone must not go on for ever.
        patch.setattr(task, "max_retries", RETRIES)
    results = CacheBackend(app=app, backend="memory")
    results.client.cache = {}  # its own: an id of an earlier test is free again
    patch.setattr(app, "_backend_cache", results)
    patch.setattr(Celery, "send_task", _diverted(Celery.send_task))


@contextmanager
def refused() -> Iterator[None]:
    """In the block every message is refused, as by a broker that is away."""
    app.conf.task_always_eager = False
    try:
        yield
    finally:
        app.conf.task_always_eager = True


def _diverted(send: Callable[..., Any]) -> Callable[..., Any]:
    # Celery's eager mode leaves out what is sent by name, from this app or another one.
    def send_task(sender: Celery, name: str, args: Any = None, kwargs: Any = None, **options: Any) -> Any:  # noqa: ANN401
        if not name.startswith(OURS):
            return send(sender, name, args, kwargs, **options)
        if not app.conf.task_always_eager:
            raise OperationalError("the broker is away, as office.broker_away() has it")
        return app.tasks[name].apply_async(args, kwargs, **options)

    return send_task
