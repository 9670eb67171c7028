"""Counters and logs. Only this module declares counters, and no label is ever an id or free text (ADM-9.1)."""

from __future__ import annotations

from typing import Final

import structlog
from prometheus_client import Counter

from office_tasks.reasons import label

log: Final = structlog.stdlib.get_logger("office")

_DEDUP: Final = Counter("office_run_dedup_total", "Wakes that were redeliveries", ["reason", "kind", "queue"])
_KEYLESS: Final = Counter("office_run_dedup_keyless_total", "Wakes decided without a key", ["reason", "cause"])
_LIMIT: Final = Counter("office_assignment_rate_limit_total", "What the assignment allowance did", ["reason"])
_ADMISSIONS: Final = Counter("office_run_admissions_total", "Wakes decided", ["reason", "outcome"])
_EXECUTIONS: Final = Counter("office_run_executions_total", "Executions that ended", ["reason", "result"])
_RECOVERY: Final = Counter("office_recovery_total", "Ticks of the recovery jobs", ["job", "result"])
_SUPPRESSED: Final = Counter(
    "office_session_term_suppressed_total", "Sessions that were not ended", ["reason", "retained"]
)
_REFUSALS: Final = Counter("office_run_refusals_total", "Wakes refused", ["reason", "refusal"])


def count_dedup(reason: str, kind: str) -> None:
    """Count a redelivery that was found by its key; `kind` is `windowed` or `durable`."""
    _DEDUP.labels(label(reason), kind, "runs").inc()


def count_keyless(reason: str, cause: str) -> None:
    """Count a wake decided without a key; `cause` is `unresolved` or `by_design`."""
    _KEYLESS.labels(label(reason), cause).inc()


def count_limit(what: str) -> None:
    """Count what the allowance did: `allowance_exhausted`, `count_read_failed` or `task_unattributed`."""
    _LIMIT.labels(what).inc()


def count_admission(reason: str, outcome: str) -> None:
    """Count one decided wake."""
    _ADMISSIONS.labels(label(reason), outcome).inc()


def count_refusal(reason: str, refusal: str) -> None:
    """Count one refused wake; input that was never a wake is refused as `invalid`."""
    _REFUSALS.labels(label(reason), refusal).inc()


def count_execution(reason: str, result: str) -> None:
    """Count one execution's end: `finished`, `retried`, `failed`, `cancelled`, or `lost` to whoever took it over."""
    _EXECUTIONS.labels(label(reason), result).inc()


def count_recovery(job: str, result: str) -> None:
    """Count one tick of a recovery job: `done`, `failed`, or `skipped` when another was at work (REC-3.5)."""
    _RECOVERY.labels(job, result).inc()


def count_suppressed_termination(reason: str, retained: str) -> None:
    """Count a session that was kept: its agent holds a `runner` or a `seat`, or the question failed (`read_failed`)."""
    _SUPPRESSED.labels(reason, retained).inc()
