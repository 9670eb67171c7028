"""Gauges that Postgres answers when they are scraped: true in whichever process, and after any restart (REC-3.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import structlog
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import Engine

from db import gauges
from db.engine import autocommit
from db.errors import brief

log: Final = structlog.stdlib.get_logger("office")

_SCRAPE_OK: Final = ("office_scrape_ok", "Whether Postgres answered; without an answer there are no other gauges")
_LAST_SUCCESS: Final = ("office_last_success_timestamp", "Unix time at which the recovery job last succeeded")
_OWED: Final = ("office_oldest_owed_seconds", "Age of the oldest owed wake whose workspace is not paused")
_OWED_WAKES: Final = ("office_owed_wakes", "Owed wakes, counted; those of a paused workspace too")
_QUEUED: Final = ("office_oldest_queued_seconds", "How long the oldest run waits that is due and could be claimed")
_RUNS: Final = ("office_runs", "Runs: queued and claimed as counted, the ended ones as the last ANALYZE saw them")
_ALL: Final = (_SCRAPE_OK, _LAST_SUCCESS, _OWED, _OWED_WAKES, _QUEUED, _RUNS)


class OfficeGauges(Collector):
    """The office's gauges. Making or registering one opens nothing; each scrape is one round trip to Postgres.

    Args:
        engine: one that its scrapes share with nobody, so that no work of the process makes them wait.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Name the gauges without asking Postgres."""
        return [GaugeMetricFamily(*each) for each in _ALL]

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Read the gauges; whatever goes wrong is `office_scrape_ok 0`, and never an error of the whole scrape."""
        try:
            with autocommit(self._engine) as connection:
                reading = gauges.read(connection)
        except Exception as error:  # noqa: BLE001 - the counters of this process must be scraped all the same
            log.warning("scrape_failed", error=brief(error))
            return self.unread()
        return [
            GaugeMetricFamily(*_SCRAPE_OK, value=1),
            _labelled(_LAST_SUCCESS, "job", reading.succeeded),
            GaugeMetricFamily(*_OWED, value=reading.oldest_owed),
            GaugeMetricFamily(*_OWED_WAKES, value=reading.owed),
            GaugeMetricFamily(*_QUEUED, value=reading.oldest_queued),
            _labelled(_RUNS, "status", {**reading.live, **reading.ended}),
        ]

    @staticmethod
    def unread() -> Iterable[GaugeMetricFamily]:
        """Say that Postgres did not answer."""
        return [GaugeMetricFamily(*_SCRAPE_OK, value=0)]


def _labelled(named: tuple[str, str], label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(*named, labels=[label])
    for of, value in sorted(values.items()):
        family.add_metric([of], value)
    return family
