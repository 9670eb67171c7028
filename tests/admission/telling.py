"""What a piece of work told: how far it moved each counter, and what it logged."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field

from prometheus_client import REGISTRY
from structlog.testing import capture_logs

ADMISSIONS = "office_run_admissions_total"
DEDUP = "office_run_dedup_total"
KEYLESS = "office_run_dedup_keyless_total"
LIMIT = "office_assignment_rate_limit_total"
REFUSALS = "office_run_refusals_total"


@dataclass
class Told:
    """The counters that moved, by name and sorted label values as `{(name, label, …): by}`, and the log's entries."""

    moved: dict = field(default_factory=dict)
    logged: list = field(default_factory=list)

    def events(self, name):
        return [entry for entry in self.logged if entry["event"] == name]


def series(prefix="office_"):
    """Return every series of our counters: `{(name, (("label", "value"), …)): value}`."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if sample.name.startswith(prefix) and sample.name.endswith("_total")
    }


def counted(name, **labels):
    """Return the key of one series in `Told.moved`."""
    return name, tuple(sorted(labels.items()))


@contextmanager
def listening():
    """Yield what the block tells; complete once the block is over."""
    told = Told()
    before = series()
    with capture_logs() as logged:
        yield told
    told.logged = logged
    told.moved = {key: value - before.get(key, 0) for key, value in series().items() if value != before.get(key, 0)}
