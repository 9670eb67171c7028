"""Counters and logs. Only this module declares counters, and no label is ever an id or free text (ADM-9.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import structlog

from office_tasks.reasons import CUSTOM, REASONS, label
from office_tasks.shared import SharedCounter, Store

log: Final = structlog.stdlib.get_logger("office")

_DEDUP: Final = SharedCounter("office_run_dedup_total", "Wakes that were redeliveries", ["reason", "kind", "queue"])
_KEYLESS: Final = SharedCounter("office_run_dedup_keyless_total", "Wakes decided without a key", ["reason", "cause"])
_LIMIT: Final = SharedCounter("office_assignment_rate_limit_total", "What the assignment allowance did", ["reason"])
_ADMISSIONS: Final = SharedCounter("office_run_admissions_total", "Wakes decided", ["reason", "outcome"])
_EXECUTIONS: Final = SharedCounter("office_run_executions_total", "Executions that ended", ["reason", "result"])
_RECOVERY: Final = SharedCounter("office_recovery_total", "Ticks of the recovery jobs", ["job", "result"])
_SUPPRESSED: Final = SharedCounter(
    "office_session_term_suppressed_total", "Sessions that were not ended", ["reason", "retained"]
)
_REFUSALS: Final = SharedCounter("office_run_refusals_total", "Wakes refused", ["reason", "refusal"])


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


def share(store: Store, jobs: Iterable[str] = (), guarded: Iterable[str] = ()) -> Store:
    """Keep the counters in a store that several processes add to; to be called before anything is counted.

    What an alert watches starts at zero: of a series that appears with its first event, Prometheus sees no increase.

    Args:
        store: the worker's; it is returned.
        jobs: the recovery jobs.
        guarded: why a session may have to end.
    """
    SharedCounter.store = store
    for what in ("allowance_exhausted", "count_read_failed", "task_unattributed"):
        _LIMIT.labels(what)
    for reason in (*REASONS, CUSTOM):
        _REFUSALS.labels(reason, "pause_gate_unavailable")
    for reason in guarded:
        _SUPPRESSED.labels(reason, "read_failed")
    for job in jobs:
        for result in ("done", "failed", "skipped"):
            _RECOVERY.labels(job, result)
    return store
