"""The one endpoint of a worker that Prometheus scrapes: served by its main process, for all of its pool (OPS-1.2)."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable
from concurrent.futures import Future
from functools import partial
from threading import Event, Lock, Thread
from typing import Any, Final

import structlog
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import Engine

from db.engine import make_engine
from office_tasks import telemetry
from office_tasks.gauges import OfficeGauges
from office_tasks.settings import Settings
from office_tasks.shared import OwnDirectory, SharedCounters, Store
from office_tasks.termination import GUARDED

log: Final = structlog.stdlib.get_logger("office")

# Prometheus gives up a scrape after ten seconds unless told otherwise.
PATIENCE_SECONDS: Final = 4
STATEMENT_TIMEOUT: Final = "2000"  # milliseconds
RETRY_SECONDS: Final = 5


class Exporter:
    """What a worker serves on `OFFICE_METRICS_PORT`; without a port it does nothing. Making one opens nothing."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._registry: CollectorRegistry | None = None
        self._server: Any = None

    def count_together(self, jobs: Iterable[str]) -> None:
        """Make the counters of this process and of its children add up. To be called before the first fork.

        Args:
            jobs: the recovery jobs, whose counters start at zero.
        """
        if not self._settings.metrics_port:
            return
        try:
            directory = OwnDirectory()
            counters = SharedCounters(telemetry.share(Store(directory.path), jobs, GUARDED))
        except OSError as error:
            log.error("metrics_not_served", error=str(error))  # noqa: TRY400 - the sentence says it all
            return
        atexit.register(_remove, directory, os.getpid())
        self._registry = CollectorRegistry()
        self._registry.register(counters)
        self._registry.register(BoundedGauges(OfficeGauges(_engine(self._settings))))

    def serve(self) -> None:
        """Serve, now or as soon as the port is free: a worker is there to admit, with or without its metrics."""
        if self._registry is None or self._listen():
            return
        Thread(target=self._keep_trying, name="metrics", daemon=True).start()

    def leave(self) -> None:
        """Close what a child of the pool inherited, so that the port is free once the main process has ended."""
        if self._server is not None:
            self._server.socket.close()

    def _listen(self, *, told: bool = False) -> bool:
        where = {"address": str(self._settings.metrics_address), "port": self._settings.metrics_port}
        try:
            self._server, _ = start_http_server(where["port"], where["address"], self._registry)  # type: ignore[arg-type]
        except OSError as error:
            if not told:
                log.error("metrics_not_served", **where, error=str(error), retried_every_seconds=RETRY_SECONDS)  # noqa: TRY400 - likewise
            return False
        log.info("metrics_served", **where)
        return True

    def _keep_trying(self) -> None:
        gap = Event()
        while not self._listen(told=True):
            gap.wait(RETRY_SECONDS)


class BoundedGauges(Collector):
    """Gauges that never hold a scrape up: a Postgres that froze would keep its reader waiting for ever.

    Args:
        gauges: what is read, in a thread of its own, by one reader at a time.
        patience: seconds after which a scrape says that Postgres did not answer.
    """

    def __init__(self, gauges: OfficeGauges, patience: float = PATIENCE_SECONDS) -> None:
        self._gauges = gauges
        self._patience = patience
        self._lock = Lock()
        self._reading: Future[Iterable[GaugeMetricFamily]] | None = None

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Name the gauges without asking Postgres."""
        return self._gauges.describe()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Return a reading, or that there is none."""
        try:
            return self._read().result(self._patience)
        except TimeoutError:
            return self._gauges.unread()

    def _read(self) -> Future[Iterable[GaugeMetricFamily]]:
        with self._lock:
            if self._reading is None or self._reading.done():
                self._reading = Future()
                Thread(target=partial(_fill, self._reading, self._gauges), name="gauges", daemon=True).start()
            return self._reading


def _fill(reading: Future[Iterable[GaugeMetricFamily]], gauges: OfficeGauges) -> None:
    try:
        reading.set_result(gauges.collect())
    except BaseException as error:  # noqa: BLE001 - whoever waits for it must hear of it
        reading.set_exception(error)


def _engine(settings: Settings) -> Engine:
    url = settings.database_url.get_secret_value()
    return make_engine(url, application_name="office-metrics", session={"statement_timeout": STATEMENT_TIMEOUT})


def _remove(directory: OwnDirectory, owner: int) -> None:
    if os.getpid() == owner:
        directory.remove()
