"""A program that has a Celery app of its own and imports ours."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
from celery import Celery
from office_tasks.tasks import queue_run
import recovery.tasks
theirs = Celery("theirs", set_as_current=False, broker="memory://")
theirs.finalize()
assert not [name for name in theirs.tasks if name.startswith(("office.", "recovery."))]
assert queue_run.app.main == "office_tasks"
assert {"office.queue_run", "office.execute_run", "recovery.relay_owed"} <= set(queue_run.app.tasks)
"""


def test_the_callers_app_is_given_none_of_our_tasks():
    """REC-2.9: our tasks are bound to our configuration, which another app does not have."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
