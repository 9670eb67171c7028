"""Brokers for commands that look at one: an app of its own for each, with the office's schedule and patience."""

from __future__ import annotations

from celery import Celery

from recovery.schedule import SCHEDULE


def looking_at(url: str) -> Celery:
    """Return an app whose broker is at `url`."""
    app = Celery("looking", broker=url, set_as_current=False)
    app.conf.broker_transport_options = {"socket_timeout": 1, "socket_connect_timeout": 1, "max_retries": 0}
    app.conf.broker_connection_timeout = 1
    app.conf.beat_schedule = SCHEDULE
    return app
