"""How soon a queued run is executed, and what becomes of one whose signal was lost (REC-2.6)."""

from __future__ import annotations

import json
import statistics

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from office_tasks.devstack.ports import pick
from office_tasks.execution import signals
from office_tasks.replay.worker import client
from office_tasks.settings import Settings
from recovery.dispatch import MOST, dispatch_once
from tests.nodes.verbs import wait_exit
from tests.nodes.waiting import until
from tests.support import after


@pytest.fixture
def waiting(caller):
    """Return a function that counts the signals that nobody took."""
    return lambda: caller.redis.llen(signals.QUEUE)


@pytest.fixture
def dispatch(broker, board):
    """Return a function that makes one pass of the safety net, with our own configuration."""
    url = SecretStr(broker.container.celeryconfig["host_url"])
    app = client(Settings(broker_url=url, result_backend=url))
    yield lambda: dispatch_once(board.engine, signals.Signals(app))
    app.close()


@pytest.mark.office_worker(concurrency=2, queues="admission,execution")
def test_each_admission_is_executed_at_once(worker, caller, desk, record_property):
    """REC-2.6: from the caller's message to the handler's start, without beat, a hundred times, one by one."""
    waits = []
    for number in range(100):
        sent = caller.app.now().timestamp()
        result = caller.send("queue_run", "ana", f"r-{number}", {"do": "work"})
        run_id = result.get(timeout=30)["run_id"]
        desk.until_status(run_id, "finished")
        waits.append(desk.told(run_id)[0]["at"] - sent)
    record_property("p50_ms", round(1_000 * statistics.median(waits), 1))
    record_property("p95_ms", round(1_000 * statistics.quantiles(waits, n=20)[-1], 1))
    assert {row["attempt"] for row in caller.board.runs()} == {1}


@pytest.mark.office_worker(concurrency=1, queues="admission")
def test_a_lost_signal_is_sent_again(worker, start_worker, beat, broker, caller, desk, waiting):
    """REC-2.6: Redis comes back empty between insert and claim: beat's next dispatch brings the run to execution."""
    run_id = caller.ask("queue_run", "ana", "manual_resume", {"do": "work"})["run_id"]
    until(lambda: waiting() == 1, what="the signal")
    broker.kill("SIGKILL")
    broker.restart()
    assert waiting() == 0
    start_worker(queues="recovery,execution")
    assert desk.until_status(run_id, "finished")["attempt"] == 1
    assert desk.attempts(run_id) == [1]


def queue_runs(board, agent, count):
    board.execute(
        "INSERT INTO runs (id, agent_profile_id, reason, payload, requested_at) "
        "SELECT gen_random_uuid(), :agent, 'r-' || n, '{\"do\": \"work\"}', CAST(:at AS timestamptz) "
        "FROM generate_series(1, :count) n",
        agent=agent, count=count, at=after(),
    )  # fmt: skip


def test_signals_never_pile_up(board, dispatch, waiting):
    """REC-2.6: twenty passes with nobody to take a signal: as many wait as runs could start, and no more."""
    queue_runs(board, "ana", 1_000)
    assert dispatch() == {"startable": 1, "signalled": 1}
    assert [dispatch() for _ in range(19)] == [{"startable": 1, "signalled": 0}] * 19
    board.execute("UPDATE agents SET max_concurrent_sessions = 7 WHERE id = 'bob'")
    queue_runs(board, "bob", 1_000)
    assert [dispatch()["signalled"] for _ in range(20)] == [7] + [0] * 19
    board.execute("UPDATE agents SET max_concurrent_sessions = 1000 WHERE id = 'bob'")
    assert [dispatch()["signalled"] for _ in range(20)] == [MOST - 8] + [0] * 19
    assert waiting() == MOST


def test_nothing_is_sent_for_what_could_not_start(board, dispatch, waiting):
    """REC-2.6, REC-2.2: a busy agent, a paused one, a paused workspace, a retry that has not come: no signal."""
    queue_runs(board, "ana", 3)
    queue_runs(board, "bob", 3)
    board.execute("UPDATE runs SET scheduled_retry_at = now() + interval '1 hour' WHERE agent_profile_id = 'bob'")
    board.set_status(board.rows("SELECT id FROM runs WHERE agent_profile_id = 'ana'")[0]["id"], "claimed")
    assert dispatch() == {"startable": 0, "signalled": 0}
    assert waiting() == 0


@pytest.mark.office_worker(concurrency=2, queues="admission,execution")
def test_the_next_of_a_busy_agent_starts_when_it_is_free(worker, caller, desk):
    """REC-2.6, REC-2.2: without beat: its signal found the agent busy; the end of the first run brings the second."""
    first = caller.ask("queue_run", "ana", "r-1", {"do": "hold"})["run_id"]
    desk.until_began(first)
    second = caller.ask("queue_run", "ana", "r-2", {"do": "work"})["run_id"]
    other = caller.ask("queue_run", "bob", "r-1", {"do": "work"})["run_id"]
    desk.until_status(other, "finished")
    assert desk.board.run(second)["status"] == "queued"
    desk.open_gate()
    for run_id in (first, second):
        desk.until_status(run_id, "finished")


@pytest.mark.office_worker(concurrency=1, queues="admission,execution")
def test_too_many_signals_find_nothing(worker, caller, desk, waiting):
    """REC-2.6: a hundred for one run: it is executed once, and none is left."""
    desk.signal(50)
    run_id = caller.ask("queue_run", "ana", "r-1", {"do": "work"})["run_id"]
    desk.signal(50)
    desk.until_status(run_id, "finished")
    until(lambda: waiting() == 0 == caller.redis.hlen("unacked"), what="all signals are taken")
    assert (desk.attempts(run_id), caller.board.count("runs")) == ([1], 1)


@pytest.mark.office_worker(concurrency=1, queues="admission")
def test_a_replays_own_worker_tells_nobody(start_worker, caller, waiting):
    """REC-2.6: what a replay queues is never executed: of two workers, only the installation's sends a signal."""
    quiet = start_worker(app="office_tasks.replay.quiet")
    assert caller.ask("queue_run", "ana", "r-1")["outcome"] == "queued"
    assert waiting() == 0
    quiet.kill("SIGTERM")
    wait_exit(quiet)
    start_worker()
    assert caller.ask("queue_run", "ana", "r-2")["outcome"] == "queued"
    until(lambda: waiting() == 1, what="the signal")


def test_a_signal_carries_no_limits_of_its_sender(caller, waiting, broker):
    """REC-2.9: those of the executor count, and a message's would go before them."""
    url = SecretStr(broker.container.celeryconfig["host_url"])
    app = client(Settings(broker_url=url, result_backend=url, run_time_limit=6))
    app.finalize()
    assert signals.Signals(app).send() == 1
    message = json.loads(caller.redis.lindex(signals.QUEUE, 0))
    assert message["headers"]["timelimit"] == [None, None]
    app.close()


def test_a_broker_that_is_away_is_asked_once_in_a_while():
    """REC-2.6: a message that queues many runs waits for a dead broker once, not for each of them."""
    app = client(Settings(broker_url=SecretStr(f"redis://127.0.0.1:{pick()}/0")))
    sending = signals.Signals(app)
    with capture_logs() as logs:
        assert [sending.send(2) for _ in range(5)] == [0] * 5
    assert [entry["event"] for entry in logs] == ["run_not_signalled"]
    app.close()
