"""Our app with a plain no-op beside its tasks: the yardstick of P5 and P6, in the same worker and queue."""

from __future__ import annotations

from celery import Task

from office_tasks.celery_app import app

NOOP = "bench.noop"


@app.task(name=NOOP, base=Task)
def noop() -> None:
    """Do nothing, as a Celery task of nobody's."""
