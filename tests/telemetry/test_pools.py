"""One endpoint a worker, whatever its pool, that adds up what its processes counted (OPS-1.2)."""

from __future__ import annotations

import pytest
from prometheus_client.mmap_dict import MmapedDict

from tests.integration.faults import setting
from tests.nodes.verbs import kill_child, pool_pids
from tests.nodes.waiting import until
from tests.telemetry.scraping import ADMISSIONS, REFUSALS, counters, went_down

POOLS = {"prefork": 4, "threads": 4, "solo": 1}


def children_that_counted(directories):
    """Return the files of children in which anything was counted."""
    files = directories.glob("*/worker-*/counter_*.db")
    counts = {file.stem: [value for _, value, *_ in MmapedDict.read_all_values_from_file(str(file))] for file in files}
    return {name for name, values in counts.items() if any(values)}


def ask(caller, count, *, first=0):
    sent = [caller.send("queue_run", "ana", f"r-{first + number}") for number in range(count)]
    return [result.get(timeout=60)["outcome"] for result in sent]


@pytest.mark.office_worker(concurrency=4)
def test_every_child_is_in_every_scrape(worker, caller, endpoint, directories):
    """C09: 20 queued, 10 duplicates, 10 refused by a pause; three scrapes in a row agree; several children worked."""
    keys = [f"key-{number}" for number in range(20)]
    queued = [caller.send("queue_run", "ana", f"r-{key}", idempotency_key=key) for key in keys]
    assert [result.get(timeout=60)["outcome"] for result in queued] == ["queued"] * 20
    again = [caller.send("queue_run", "ana", f"r-{key}", idempotency_key=key) for key in keys[:10]]
    assert [result.get(timeout=60)["outcome"] for result in again] == ["deduped"] * 10
    caller.board.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
    refused = [caller.send("queue_run", "ana", f"r-{number}") for number in range(10)]
    assert {type(caller.error_of(result)).__name__ for result in refused} == {"WorkspacePaused"}
    scrapes = [counters(endpoint.scrape()) for _ in range(3)]
    assert scrapes[0] == scrapes[1] == scrapes[2]
    shown = {outcome: endpoint.total(ADMISSIONS, outcome=outcome) for outcome in ("queued", "deduped")}
    assert shown == {"queued": 20, "deduped": 10}
    assert endpoint.total(REFUSALS, refusal="workspace_paused") == 10
    assert endpoint.total(REFUSALS) == 10
    assert len(children_that_counted(directories)) >= 2


@pytest.mark.parametrize(
    "pool",
    [pytest.param(pool, marks=pytest.mark.office_worker(pool=pool, concurrency=n)) for pool, n in POOLS.items()],
)
def test_in_every_pool(worker, caller, endpoint, pool):
    """OPS-1.2: prefork, threads and solo."""
    assert set(ask(caller, 30)) == {"queued"}
    assert endpoint.total(ADMISSIONS, outcome="queued") == 30
    assert endpoint.total("office_scrape_ok") == 1
    assert endpoint.total("office_runs", status="queued") == 30


@pytest.mark.office_worker(concurrency=4, args=("--without-gossip", "--without-mingle", "--max-tasks-per-child=5"))
def test_totals_outlive_recycled_and_killed_children(worker, caller, endpoint, directories):
    """OPS-1.2: the calls add up over 40 recyclings and kill -9 of children; no total ever goes down."""
    before, asked = endpoint.scrape(), 0
    started = set(pool_pids(worker))
    for _ in range(6):
        assert set(ask(caller, 20, first=asked)) == {"queued"}
        asked += 20
        # The youngest: the oldest may be on its way out by itself.
        kill_child(worker, pool_pids(worker)[-1])
        now = endpoint.scrape()
        assert went_down(before, now) == {}
        assert endpoint.total(ADMISSIONS, outcome="queued") == asked
        before = now
    until(lambda: not started & set(pool_pids(worker)), what="every first child is gone")
    assert set(ask(caller, 20, first=asked)) == {"queued"}
    assert endpoint.total(ADMISSIONS, outcome="queued") == asked + 20
    # What ended children counted is kept in one file: a scrape costs the same after a thousand of them.
    assert len(list(directories.glob("*/worker-*/counter_*.db"))) <= 4 + 4 + 2


@pytest.mark.office_worker(concurrency=4, args=("--without-gossip", "--without-mingle", "--max-tasks-per-child=5"))
def test_calls_add_up_when_children_die_at_work(start_worker, caller, endpoint, arm):
    """OPS-1.2, R12: kill -9 under load, each time amid a call that comes back: every call counts once."""
    fault = arm("kill")
    start_worker(env=setting(fault.at("before_deciding")))
    before = endpoint.scrape()
    sent = [caller.send("queue_run", "ana", f"r-{number}") for number in range(60)]
    for _ in range(3):
        fault.once()
        fault.struck()
        now = endpoint.scrape()
        assert went_down(before, now) == {}
        before = now
    assert {result.get(timeout=60)["outcome"] for result in sent} == {"queued"}
    assert endpoint.total(ADMISSIONS) == endpoint.total(ADMISSIONS, outcome="queued") == len(caller.board.runs()) == 60


@pytest.mark.office_worker(concurrency=2)
@pytest.mark.parametrize("signal", ["SIGTERM", "SIGKILL"])
def test_a_restarted_worker_starts_from_zero(worker, caller, endpoint, directories, signal):
    """OPS-1.2: without the files of the one before it, however that ended."""
    ask(caller, 5)
    assert endpoint.total(ADMISSIONS) == 5
    old = set(directories.glob("*/worker-*"))
    worker.kill(signal)
    worker.container._container.wait(timeout=60)
    worker.restart()
    assert endpoint.total(ADMISSIONS) == 0
    ask(caller, 3, first=5)
    assert endpoint.total(ADMISSIONS) == 3
    new = set(directories.glob("*/worker-*"))
    assert len(old) == len(new) == 1
    assert not old & new
