"""The handler of the executions here: it says that it works, and works until it is told to stop or let go."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Event

from office_tasks.execution.execute import execute_next
from tests.faults.waits import in_background
from tests.nodes.waiting import until

PATH = "tests.termination.handlers:work"
WAIT = 20

_at_work = []


class Working:
    """One execution, under way in a thread of its own; `call` is what becomes of it."""

    def __init__(self) -> None:
        self.begun, self.may_end = Event(), Event()
        self.session = None

    def over(self):
        """Wait for its end by itself: that it was told to stop."""
        return self.call.result(WAIT)

    def finish(self):
        """Let it come to its own end."""
        self.may_end.set()
        return self.call.result(WAIT)


def work(context):
    execution = _at_work[-1]
    execution.session = context.session and context.session.id
    execution.begun.set()
    until(lambda: execution.may_end.is_set() or context.cancelled(), timeout=WAIT, what="the end of the execution")
    return "done"


@contextmanager
def executing(engine):
    """Yield the execution of the next run in line, once its handler is at work."""
    execution = Working()
    _at_work.append(execution)
    with in_background() as start:
        execution.call = start(execute_next, engine, PATH)
        try:
            until(lambda: execution.begun.is_set() or execution.call.done(), what="an execution")
            assert execution.begun.is_set(), execution.call.result()
            yield execution
        finally:
            execution.may_end.set()
            _at_work.remove(execution)
