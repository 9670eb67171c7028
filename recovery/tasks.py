"""The beat jobs as Celery tasks: three lines each over a plain function."""

from __future__ import annotations

from typing import Any

from office_tasks import app
from office_tasks.base import OfficeTask
from recovery.relay import relay_once
from recovery.sweep import sweep_once


@app.task(name="recovery.relay_owed", bind=True)
def relay_owed(self: OfficeTask) -> dict[str, int]:
    """Settle, admit and publish what no message did."""
    return relay_once(self.office.engine, self.office.stream)


@app.task(name="recovery.recover_unstarted_tasks", bind=True)
def recover_unstarted_tasks(self: OfficeTask) -> dict[str, Any]:
    """Wake tasks that were assigned and never started."""
    return sweep_once(self.office.engine, self.message_id)
