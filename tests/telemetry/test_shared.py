"""Counters of several processes, by themselves: forks, ends, and directories that are left behind."""

from __future__ import annotations

import os
import shutil

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from office_tasks import telemetry
from office_tasks.shared import OwnDirectory, SharedCounter, SharedCounters, Store

# Newer Pythons warn of every fork beside threads; these children count, and end.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    yield store
    store.close()


@pytest.fixture
def counter(store, monkeypatch):
    monkeypatch.setattr(SharedCounter, "store", store)
    return SharedCounter("office_tries", "Tries", ["how"], registry=None)


@pytest.fixture
def shown(store):
    registry = CollectorRegistry()
    counters = SharedCounters(store)
    registry.register(counters)
    yield lambda: [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]
    counters.close()


def in_a_child(work):
    """Fork, work, and end without any clean-up, as SIGKILL would."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0) == (pid, 0)
    return pid


def test_processes_add_up_and_ended_ones_stay(store, counter, shown):
    """OPS-1.2: before and after the file of an ended child is taken over, and in whatever order."""
    counter.labels("well").inc(2)
    for _ in range(3):
        in_a_child(counter.labels("well").inc)
    in_a_child(lambda: counter.labels("badly").inc(5))
    for _ in range(2):
        assert sorted(shown()) == ['office_tries_total{how="badly"} 5.0', 'office_tries_total{how="well"} 5.0']
    assert {path.name for path in store.directory.iterdir()} == {"counter_ended.db", f"counter_{os.getpid()}.db"}
    in_a_child(counter.labels("well").inc)
    counter.labels("well").inc()
    assert 'office_tries_total{how="well"} 7.0' in shown()


def test_a_thousand_ended_children_are_one_file(store, counter, shown):
    """OPS-1.2: what a scrape reads does not grow with the children that a worker has had."""
    pid = in_a_child(counter.labels("well").inc)
    left = store.directory / f"counter_{pid}.db"
    for number in range(4_194_304, 4_194_304 + 1_000):  # beyond what Linux gives out
        shutil.copy(left, left.with_name(f"counter_{number}.db"))
    (store.directory / "counter_5000000.db").touch()  # killed before it wrote a byte
    assert shown() == ['office_tries_total{how="well"} 1001.0']
    assert {path.name for path in store.directory.iterdir()} == {"counter_ended.db", f"counter_{os.getpid()}.db"}


def test_a_child_whose_parent_was_counting_when_it_forked(store, counter, shown):
    """C20: a lock that a thread of the parent held would never be let go in the child."""
    labelled = counter.labels("well")
    with store._lock:
        pid = os.fork()
        if pid == 0:
            try:
                labelled.inc()
            finally:
                os._exit(0)
        assert os.waitpid(pid, 0) == (pid, 0)
    assert shown() == ['office_tries_total{how="well"} 1.0']


def test_a_directory_that_is_gone_fails_nobody(store, counter):
    """ADM-9.4: what cannot be counted is not counted."""
    labelled = counter.labels("well")
    shutil.rmtree(store.directory)
    in_a_child(labelled.inc)
    store.close()
    labelled.inc()


def test_what_a_dead_worker_left_goes_with_the_next(tmp_path):
    """OPS-1.2: one directory a worker; a lock tells whose owner lives."""
    base = tmp_path / "metrics"
    living = OwnDirectory(base)
    dead = OwnDirectory(base)
    os.close(dead._lock)
    third = OwnDirectory(base)
    assert set(base.glob("worker-*")) == {living.path, third.path}
    living.remove()
    third.remove()
    assert list(base.glob("worker-*")) == []


def test_a_directory_that_others_may_write_to_is_refused(tmp_path):
    """OPS-4: /tmp is everybody's."""
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "mine").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    for name in ("open", "link"):
        with pytest.raises(PermissionError, match="nobody else may write"):
            OwnDirectory(tmp_path / name)


def test_what_alerts_watch_starts_at_zero(store, shown, monkeypatch):
    """OPS-1.2: of a series that appears with its first event, `increase` is none."""
    for name in ("_LIMIT", "_REFUSALS", "_RECOVERY", "_SUPPRESSED"):
        real = getattr(telemetry, name)
        fresh = SharedCounter(real._name, real._documentation, real._labelnames, registry=None)
        monkeypatch.setattr(telemetry, name, fresh)
    monkeypatch.setattr(SharedCounter, "store", None)
    telemetry.share(store, ["recovery.relay_owed"], ["seat_claimed"])
    lines = shown()
    assert 'office_assignment_rate_limit_total{reason="count_read_failed"} 0.0' in lines
    assert 'office_recovery_total{job="recovery.relay_owed",result="failed"} 0.0' in lines
    assert 'office_session_term_suppressed_total{reason="seat_claimed",retained="read_failed"} 0.0' in lines
    assert any("pause_gate_unavailable" in line and line.endswith(" 0.0") for line in lines)
