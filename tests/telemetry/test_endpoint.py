"""The endpoint beside what goes wrong: Postgres away or frozen, a port that is taken, settings that cannot work."""

from __future__ import annotations

import socket
import subprocess

import psutil
import pytest

from office_tasks.devstack.ports import pick
from office_tasks.exporter import BoundedGauges
from office_tasks.gauges import OfficeGauges
from office_tasks.settings import SettingsError, load
from tests.cli.conftest import PROGRAM
from tests.integration.caller import events
from tests.nodes.engine import ROOT
from tests.nodes.verbs import kill_child, pool_pids, wait_for_log
from tests.nodes.waiting import until
from tests.nodes.worker import inherited
from tests.telemetry.scraping import ADMISSIONS, Endpoint

NOWHERE = f"postgresql+psycopg://office:canary@127.0.0.1:{pick()}/office"


@pytest.fixture
def mute():
    """A server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.office_worker(concurrency=1, env={"OFFICE_DATABASE_URL": NOWHERE})
def test_without_postgres_the_counters_are_scraped_all_the_same(worker, endpoint):
    """OPS-1.2, REC-3.5: it says that it knows no gauges, and never a secret."""
    text = endpoint.text()
    assert endpoint.total("office_scrape_ok") == 0
    assert "office_scrape_ok 0.0" in text
    assert "office_recovery_total" in text
    assert "office_owed_wakes" not in text
    assert "canary" not in text + worker.logs()


def test_a_postgres_that_never_answers_holds_no_scrape_up(make_test_engine, mute):
    """OPS-1.2: one reader waits for it, however many scrapes come; they say at once that there is no reading."""
    engine = make_test_engine(url=f"postgresql+psycopg://office@127.0.0.1:{mute}/office", pool_size=1)
    gauges = BoundedGauges(OfficeGauges(engine), patience=0.05)
    for _ in range(3):
        assert [(family.name, family.samples[0].value) for family in gauges.collect()] == [("office_scrape_ok", 0)]
    first = gauges._reading
    until(first.done, what="the driver gives up")
    assert gauges._read() is not first
    until(gauges._reading.done, what="the driver gives up again")


def test_gauges_that_fail_otherwise_are_heard(mute):
    """OPS-1.2: an error of ours is an error of the scrape, which Prometheus shows, and no scrape for ever."""

    class Broken(OfficeGauges):
        def collect(self):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        BoundedGauges(Broken(None)).collect()


@pytest.mark.office_worker(concurrency=1)
def test_a_port_that_is_taken_stops_no_worker(start_worker, caller, endpoint):
    """OPS-1.2: one line says so; the worker admits, and serves what it counted once the port is free."""
    with socket.create_server(("127.0.0.1", endpoint.port)):
        worker = start_worker()
        assert caller.ask("queue_run", "ana", "r")["outcome"] == "queued"
        [line] = events(worker.logs(), "metrics_not_served")
        assert (line["level"], line["port"], line["address"]) == ("error", endpoint.port, "127.0.0.1")
        assert "in use" in line["error"]
    wait_for_log(worker, "metrics_served")
    assert endpoint.total(ADMISSIONS) == 1
    assert len(events(worker.logs(), "metrics_not_served")) == 1


@pytest.mark.office_worker(concurrency=2)
def test_only_the_main_process_listens(worker, endpoint):
    """OPS-1.2, C09: no child holds the port, one that was started later neither."""
    kill_child(worker)
    until(lambda: len(pool_pids(worker)) == 2, what="a new child")
    until(lambda: holders(endpoint.port, worker) == {worker.container._container.pid}, what="one holder")


def holders(port, worker):
    """Return which of a worker's processes hold the listening socket."""
    return {pid for pid in worker.container._container.pids() if port in listening(pid)}


def listening(pid):
    found = psutil.Process(pid).net_connections("tcp")
    return {connection.laddr.port for connection in found if connection.status == psutil.CONN_LISTEN}


@pytest.mark.office_worker(concurrency=1, env={"OFFICE_METRICS_PORT": "0"})
def test_without_a_port_there_is_nothing(worker, caller, directories):
    """OPS-1.2: no endpoint, no files."""
    assert caller.ask("queue_run", "ana", "r")["outcome"] == "queued"
    assert list(directories.glob("office-metrics-*")) == []
    assert "metrics" not in worker.logs()


@pytest.mark.office_worker(concurrency=1, env={"OFFICE_METRICS_ADDRESS": "::1"})
def test_it_listens_where_it_is_told(worker, endpoint):
    """OPS-1.2: IPv6 too, and there alone."""
    assert Endpoint(endpoint.port, "[::1]").answers()
    assert not endpoint.answers()


def test_office_worker_serves_it_too(node_engine, endpoint, caller, office_env):
    """OPS-1.2: the wrapper becomes that very command."""
    words = [*PROGRAM, "worker", "-c", "2"]
    handle = node_engine.run(words, name="wrapped", env={**inherited(), **office_env})
    assert caller.ask("queue_run", "ana", "r")["outcome"] == "queued"
    assert endpoint.total(ADMISSIONS, outcome="queued") == 1
    node_engine.remove(handle)


def test_beat_and_the_command_line_stay_out_of_it(beat, endpoint, office_env, directories):
    """OPS-1.2: nobody but a worker opens the port or makes files."""
    words = [*PROGRAM, "agent", "list"]
    said = subprocess.run(words, env={**inherited(), **office_env}, cwd=ROOT, capture_output=True, check=False)
    assert said.returncode == 0, said.stderr
    assert beat.status == "running"
    assert not endpoint.answers()
    assert list(directories.glob("office-metrics-*")) == []


@pytest.mark.parametrize(
    ("variable", "value"),
    [("METRICS_PORT", "65536"), ("METRICS_PORT", "-1"), ("METRICS_PORT", "http"), ("METRICS_ADDRESS", "here")],
)
def test_a_setting_that_cannot_work_is_named(monkeypatch, variable, value):
    """OPS-2: before anything starts."""
    monkeypatch.setenv(f"OFFICE_{variable}", value)
    with pytest.raises(SettingsError, match=f"OFFICE_{variable}: "):
        load()
