"""The one base class of the recovery jobs: each says that it ran, and what it did (REC-3.4, REC-3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import structlog

from db import jobs
from db.engine import autocommit
from db.errors import brief
from office_tasks.base import OfficeTask
from office_tasks.telemetry import count_recovery

log: Final = structlog.stdlib.get_logger("office")


class RecoveryJob(OfficeTask):
    """A Celery task that beat sends. What it returns is its summary: a mapping, JSON."""

    abstract = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - Celery's own signature
        """Run the job, count how it ended, and record a success in Postgres."""
        try:
            summary = super().__call__(*args, **kwargs)
        except Exception:
            count_recovery(self.name, "failed")
            raise
        # One that found another at work has done nothing, and must not stand as a success of the other.
        if summary.get("lock") == "taken":
            count_recovery(self.name, "skipped")
        else:
            count_recovery(self.name, "done")
            self._record(dict(summary))
        return summary

    def _record(self, summary: Mapping[str, Any]) -> None:
        try:
            with autocommit(self.office.engine) as connection:
                jobs.succeeded(connection, self.name, summary)
        except Exception as error:  # noqa: BLE001 - the work is done; failing here would do it again
            log.warning("recovery_not_recorded", job=self.name, error=brief(error))
