"""The beat jobs as Celery tasks: three lines each over a plain function."""

from __future__ import annotations

from typing import Any

from office_tasks import app
from recovery.dispatch import dispatch_once
from recovery.job import RecoveryJob
from recovery.purge import purge_once
from recovery.relay import relay_once
from recovery.rescue import rescue_once
from recovery.sweep import sweep_once


@app.task(name="recovery.relay_owed", bind=True, base=RecoveryJob)
def relay_owed(self: RecoveryJob) -> dict[str, int]:
    """Settle, admit and publish what no message did."""
    return relay_once(self.office.engine, self.office.stream)


@app.task(name="recovery.recover_unstarted_tasks", bind=True, base=RecoveryJob)
def recover_unstarted_tasks(self: RecoveryJob) -> dict[str, Any]:
    """Wake tasks that were assigned and never started."""
    return sweep_once(self.office.engine, self.message_id)


@app.task(name="recovery.rescue_stale_claims", bind=True, base=RecoveryJob)
def rescue_stale_claims(self: RecoveryJob) -> dict[str, int]:
    """Give back runs whose worker died, and cancel executions that did not stop."""
    return rescue_once(self.office.engine)


@app.task(name="recovery.dispatch_queued_runs", bind=True, base=RecoveryJob)
def dispatch_queued_runs(self: RecoveryJob) -> dict[str, int]:
    """Send signals that were lost."""
    return dispatch_once(self.office.engine, self.app.executions)


@app.task(name="recovery.purge_history", bind=True, base=RecoveryJob)
def purge_history(self: RecoveryJob) -> dict[str, int | bool]:
    """Delete what is past its retention."""
    settings = self.office.settings
    return purge_once(self.office.engine, settings.run_retention, settings.history_retention)
