"""What an operator imports (`ops/`) and reads (`docs/metrics.md`) names what a worker exports, with its labels."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client import Counter

from office_tasks import telemetry
from office_tasks.gauges import OfficeGauges
from recovery.schedule import SCHEDULE
from tests.unit.test_documents import table

ROOT = Path(__file__).parents[2]
METRICS = (ROOT / "docs/metrics.md").read_text()
OPS = ROOT / "ops"
RULES = [rule for group in yaml.safe_load((OPS / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((OPS / "grafana-dashboard.json").read_text())
TARGETS = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
EXPRESSIONS = [rule["expr"] for rule in RULES] + [target["expr"] for target in TARGETS]

COUNTERS = {
    f"{each._name}_total": (each._labelnames, each._documentation)
    for each in vars(telemetry).values()
    if isinstance(each, Counter)
}
GAUGES = {family.name: family for family in OfficeGauges(None).describe()}
# Prometheus' own, and how it names a label of ours that is called as one of its own (`job`).
TARGET = {"job", "instance"}
GAUGE_LABELS = {"office_last_success_timestamp": {"job"}, "office_runs": {"status"}}
LABELS = {
    **{name: set(labels) for name, (labels, _) in COUNTERS.items()},
    **{name: GAUGE_LABELS.get(name, set()) for name in GAUGES},
    "up": set(),
}


def in_prometheus(labels):
    return TARGET | {f"exported_{label}" if label in TARGET else label for label in labels}


def series(expression):
    """Return the series that an expression reads: `[(name, {label: value})]`."""
    found = re.findall(r"\b(office_\w+|up)\b(?:\{([^}]*)\})?", expression)
    return [(name, dict(re.findall(r'(\w+)=~?"([^"]*)"', given))) for name, given in found]


def cells(text):
    return re.findall(r"`(\w+)`", text)


def test_the_table_of_counters_is_the_counters():
    shown = {cells(name)[0]: tuple(cells(labels)) for name, labels, _ in table(METRICS, "counter")}
    assert shown == {name: labels for name, (labels, _) in COUNTERS.items()}


def test_the_table_of_gauges_is_the_gauges():
    shown = {cells(name)[0]: set(cells(labels)) for name, labels, _ in table(METRICS, "gauge")}
    assert shown == {name: LABELS[name] for name in GAUGES}


def test_the_table_of_alerts_is_the_rules():
    assert [cells(row[0])[0] for row in table(METRICS, "alert")] == [rule["alert"] for rule in RULES]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_read_what_is_exported(expression):
    """OPS-1.2: each name is exported, and each label is one that it has."""
    found = series(expression)
    assert found
    for name, matchers in found:
        assert name in LABELS
        assert set(matchers) <= in_prometheus(LABELS[name]), expression
    allowed = set().union(*(in_prometheus(LABELS[name]) for name, _ in found))
    for labels in re.findall(r"by \(([^)]*)\)", expression):
        assert {label.strip() for label in labels.split(",")} <= allowed
    assert all(expression.count(opened) == expression.count(closed) for opened, closed in ("()", "{}", "[]"))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_counters_are_read_as_counters_and_gauges_as_gauges(expression):
    """OPS-1.2: a counter's rate, summed over the workers; of a gauge that each worker reads, one."""
    for name, _ in series(expression):
        inside = rf"(rate|increase)\({name}\b[^\[]*\["
        assert bool(re.search(inside, expression)) == (name in COUNTERS)


def test_values_that_are_asked_for_are_values():
    """OPS-1.2: a rule that asks for a job, or for what a gate did, names one that there is."""
    asked = [(name, *matcher) for expression in EXPRESSIONS for name, given in series(expression)
             for matcher in given.items()]  # fmt: skip
    jobs = {entry["task"] for entry in SCHEDULE.values()}
    assert {value for _, label, value in asked if label == "exported_job"} <= jobs
    known = {"count_read_failed", "pause_gate_unavailable", "read_failed", "failed", "queued|claimed", "$job", "office"}
    assert {value for _, label, value in asked if label != "exported_job"} == known
    for value in ("count_read_failed", "pause_gate_unavailable", "read_failed", "failed"):
        assert f"`{value}`" in METRICS


def test_rules_are_rules():
    """OPS-1.2: of a stale sweep, owed wakes that age, a gate that fails open, one nobody can ask, and the scrape."""
    names = [rule["alert"] for rule in RULES]
    assert len(set(names)) == len(names)
    for rule in RULES:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(rule["annotations"]) == {"summary", "action"}
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
    for meant in ("SweepStale", "OwedWakesAgeing", "GateFailingOpen", "PauseGateUnavailable", "WorkerNotScraped"):
        assert f"Office{meant}" in names


def test_the_dashboard_is_ready_to_import():
    """OPS-1.2: it asks for its data source, its panels do not overlap, and what matters is on it."""
    assert DASHBOARD["id"] is None
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["datasource", "job"]
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}
    taken = [
        (x, y) for panel in panels for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])
    ]  # fmt: skip
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24
    read = {name for target in TARGETS for name, _ in series(target["expr"])}
    assert read == set(LABELS)


def test_the_sample_of_prometheus_scrapes_what_compose_starts():
    sample = yaml.safe_load((OPS / "prometheus.yml").read_text())
    assert sample["rule_files"] == ["alerts.yml"]
    [scrape] = sample["scrape_configs"]
    assert scrape["job_name"] == "office"
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    serving = {name for name, service in services.items() if "OFFICE_METRICS_PORT" in service.get("environment", {})}
    [static] = scrape["static_configs"]
    assert {target.partition(":")[0] for target in static["targets"]} == serving == {"worker", "executor"}
    assert not any("ports" in services[name] for name in serving)
    default = services["worker"]["environment"]["OFFICE_METRICS_PORT"]
    assert {target.partition(":")[2] for target in static["targets"]} == set(re.findall(r":-(\d+)", default))
