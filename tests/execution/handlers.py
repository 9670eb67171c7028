"""The handler that `OFFICE_RUN_HANDLER` would name: it does what the test gave it to do."""

from __future__ import annotations

from contextlib import contextmanager

PATH = "tests.execution.handlers:play"
NO_FUNCTION = 42

_work = []


def play(context):
    return _work[-1](context)


@contextmanager
def playing(work):
    """Have every execution of the block do `work(context)`."""
    _work.append(work)
    try:
        yield
    finally:
        _work.remove(work)


def raising(error):
    """Return a handler that raises `error`."""

    def work(_context):
        raise error

    return work
