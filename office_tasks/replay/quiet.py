"""The app of a replay's own worker: what a replay queues is never executed, so its worker tells nobody."""

from __future__ import annotations

from celery import signals

from office_tasks.celery_app import app, signal_executions

signals.celeryd_init.disconnect(signal_executions)

__all__ = ["app"]
