"""What workers tell whoever listens to their events."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Event, Thread

from celery.events import EventReceiver


@contextmanager
def events_of(app):
    """Yield the list of all events that workers send meanwhile."""
    seen, over = [], Event()

    def listen():
        with app.connection() as connection:
            receiver = EventReceiver(connection, handlers={"*": seen.append}, app=app)
            for _ in receiver.itercapture(limit=None, timeout=1, wakeup=True):
                if over.is_set():
                    break

    def until_over():
        while not over.is_set():
            try:
                listen()
            except TimeoutError:
                continue

    listener = Thread(target=until_over, daemon=True)
    listener.start()
    try:
        yield seen
    finally:
        over.set()
        listener.join(timeout=10)
