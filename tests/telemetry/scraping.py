"""What Prometheus would read from a worker, by name and labels."""

from __future__ import annotations

import urllib.request
from urllib.error import URLError

from prometheus_client.parser import text_string_to_metric_families

from tests.nodes.waiting import until

ADMISSIONS = "office_run_admissions_total"
REFUSALS = "office_run_refusals_total"
RECOVERY = "office_recovery_total"
LAST_SUCCESS = "office_last_success_timestamp"


class Endpoint:
    """A worker's endpoint."""

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        self.port = port
        self.url = f"http://{address}:{port}/metrics"

    def text(self, timeout: float = 10) -> str:
        with urllib.request.urlopen(self.url, timeout=timeout) as answer:
            assert answer.status == 200
            return answer.read().decode()

    def answers(self) -> bool:
        try:
            self.text()
        except (URLError, ConnectionError):
            return False
        return True

    def scrape(self) -> dict[tuple[str, frozenset], float]:
        """Return `{(name, labels): value}`; each series stands there once."""
        found = {}
        for family in text_string_to_metric_families(self.text()):
            for sample in family.samples:
                key = sample.name, frozenset(sample.labels.items())
                assert key not in found
                found[key] = sample.value
        return found

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of the series that have these labels."""
        return total(self.scrape(), name, **labels)

    def until_total(self, value: float, name: str, **labels: str) -> None:
        until(lambda: self.total(name, **labels) == value, 30, f"{name}{labels} is {value}")


def total(scrape: dict, name: str, **labels: str) -> float:
    return sum(value for (named, has), value in scrape.items() if named == name and labels.items() <= set(has))


def counters(scrape: dict) -> dict:
    """Return the counters of a scrape."""
    return {key: value for key, value in scrape.items() if key[0].endswith("_total")}


def went_down(before: dict, after: dict) -> dict:
    """Return the counters that are less than they were, or gone."""
    return {key: (value, after.get(key)) for key, value in counters(before).items() if after.get(key, -1) < value}
