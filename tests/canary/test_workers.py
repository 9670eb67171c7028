"""What a worker says while everything goes wrong: in its log, its events, its results, its metrics, and when asked."""

from __future__ import annotations

import json

import pytest
from redis import Redis

from office_tasks import admin
from office_tasks.devstack.ports import pick
from tests.canary.hidden import SOUGHT, WRITTEN, leaks
from tests.canary.listening import events_of
from tests.canary.saying import CALLS, DATABASE_ERRORS, PAYLOAD, say_everything
from tests.integration.faults import setting
from tests.nodes.verbs import pool_pids, wait_for_log
from tests.nodes.waiting import until
from tests.telemetry.scraping import Endpoint

# The shortest that the settings allow.
QUICK = {"OFFICE_VISIBILITY_TIMEOUT": "6", "OFFICE_TIME_LIMIT": "5", "OFFICE_SOFT_TIME_LIMIT": "4"}
ARGS = ("--without-gossip", "--without-mingle", "--task-events")
DEBUG = {"OFFICE_LOG_LEVEL": "DEBUG"}


@pytest.fixture
def endpoint():
    return Endpoint(pick())


def stored(office_env):
    """Yield the keys and the values of the result backend, and what the broker keeps of ours beside messages."""
    for url in (office_env["OFFICE_RESULT_BACKEND"], office_env["OFFICE_BROKER_URL"]):
        redis = Redis.from_url(url)
        yield from redis.keys("*")
        yield from (redis.get(key) for key in redis.keys("celery-task-meta-*"))
        yield repr(redis.xrange("office:events")) if redis.exists("office:events") else ""
        redis.close()


def asked(caller, worker, ids):
    """Yield what a worker answers to `celery inspect`."""
    inspect = caller.app.control.inspect([worker.hostname()], timeout=10)
    for question in ("active", "reserved", "scheduled", "conf", "registered", "report", "stats", "revoked", "memdump"):
        yield getattr(inspect, question)()
    yield inspect.query_task(ids[0])


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "pool",
    [
        pytest.param(name, marks=pytest.mark.office_worker(pool=name, concurrency=2, args=ARGS, log_level="DEBUG"))
        for name in ("prefork", "threads")
    ],
)
def test_no_error_path_tells_what_was_sent(start_worker, caller, endpoint, office_env, pool):
    """OPS-1.3, OPS-4: undecodable, unknown, refused, badly called, failed in Postgres: in the logs, at DEBUG too,
    in events, results and their keys, metrics, and what a worker is asked."""
    admin.create_agent(caller.board.engine, "acme", "sam", status="stopped")
    worker = start_worker(env={**QUICK, **DEBUG, "OFFICE_METRICS_PORT": str(endpoint.port)})
    with events_of(caller.app) as seen:
        ids = say_everything(caller)
        until(lambda: sum(one["type"] == "task-received" for one in seen) >= len(CALLS), what="events")
        told = [*asked(caller, worker, ids), endpoint.text(), *stored(office_env)]
    assert leaks(worker.logs(), seen, *told) == []
    log = worker.logs()
    for said in (
        *("message_malformed", "task_unknown", "cannot be called so: ", "InvalidInput", "NotFound", "AgentNotWakeable"),
        *("P0001: RaiseException", "22P02: Invalid", "22007: Invalid", "23502: null value", "57014: canceling"),
        *("42501: InsufficientPrivilege", "23514: new row", "WorkspacePaused", "<text, "),
    ):
        assert said in log, said
    assert len(DATABASE_ERRORS) == log.count("DatabaseError('")
    # The search would find it: it is in the database.
    assert WRITTEN in repr(caller.board.rows("SELECT payload FROM runs"))


@pytest.mark.office_worker(concurrency=1, args=ARGS, log_level="DEBUG")
def test_what_waits_and_what_runs_is_shown_by_its_size(start_worker, caller):
    """OPS-1.3, OPS-4: `celery inspect` of a worker at work."""
    worker = start_worker(env=DEBUG)
    with caller.board.engine.begin() as connection:
        connection.exec_driver_sql("LOCK TABLE wakes, runs IN ACCESS EXCLUSIVE MODE")
        first = caller.send("queue_run", "ana", "manual_resume", PAYLOAD)
        caller.send("queue_run", "ana", "manual_resume", payload=PAYLOAD)
        inspect = caller.app.control.inspect([worker.hostname()], timeout=10)
        active = until(lambda: (inspect.active() or {}).get(worker.hostname()), what="what it works on")
        told = [active, *asked(caller, worker, [first.id])]
    assert "<payload, " in repr(active)
    assert leaks(worker.logs(), *told) == []


@pytest.fixture
def start_dying(start_worker, arm):
    """Start a worker whose mutations can be held before their commit, and killed before their wakes are decided."""
    pause, kill = arm("pause"), arm("kill")

    def start():
        env = {**QUICK, **DEBUG, **setting(pause.at("before_commit"), kill.at("before_deciding"))}
        return start_worker(concurrency=1, log_level="DEBUG", args=ARGS, env=env), pause, kill

    return start


@pytest.mark.timeout(240)
def test_no_death_tells_what_was_sent(start_dying, caller, office_env):
    """OPS-1.3: soft and hard time limits, killed children, retries, and a message that is given up as poisoned."""
    worker, pause, kill = start_dying()
    with events_of(caller.app) as seen:
        pause.always()
        late = caller.send("create_task", "acme", f"{WRITTEN} title", task_id="T1")
        wait_for_log(worker, "Soft time limit", 30)
        pause.off()
        assert late.get(timeout=60)["task_id"] == "T1"
        kill.always()
        poisoned = caller.send("queue_run", "bob", "manual_resume", PAYLOAD)
        wait_for_log(worker, "wake_poisoned", 60)
        kill.off()
        assert type(caller.error_of(poisoned, 60)).__name__ == "Poisoned"
    log = worker.logs()
    assert "retry: Retry in " in log
    assert "exited prematurely" in log
    assert leaks(log, seen, *stored(office_env)) == []


def test_a_hard_time_limit_tells_nothing_either(start_dying, caller, office_env):
    """OPS-1.3: a child that hears no signal is killed, and its caller told."""
    worker, pause, _ = start_dying()
    pause.always()
    late = caller.send("create_task", "acme", f"{WRITTEN} title", task_id="T1")
    inspect = caller.app.control.inspect([worker.hostname()], timeout=1)
    until(
        lambda: any(one["time_start"] for one in (inspect.active() or {}).get(worker.hostname(), [])), what="its start"
    )
    (child,) = pool_pids(worker)
    assert worker.container.exec_run(f"python -c 'import os; os.kill({child}, 19)'")[0] == 0
    wait_for_log(worker, "Hard time limit", 30)
    assert "TimeLimitExceeded" in repr(caller.error_of(late, 30))
    assert leaks(worker.logs(), *stored(office_env)) == []


RUNS = ("raise_it", "raise_from_it", "exit_with_it", "return_it", "return_no_json", "retry_it", "die", "hang", "log_it")


@pytest.mark.timeout(180)
@pytest.mark.office_worker(concurrency=2, args=ARGS, log_level="DEBUG", queues="admission,execution")
def test_what_handlers_say_stays_in_postgres(start_worker, caller, office_env, endpoint):
    """OPS-1.3: a handler raises, returns, exits, hangs or dies with the text: the run has it, and nothing else."""
    handler = {"OFFICE_RUN_HANDLER": "tests.canary.handlers:handle", "OFFICE_RUN_TIME_LIMIT": "2"}
    worker = start_worker(env={**DEBUG, **handler, "OFFICE_METRICS_PORT": str(endpoint.port)})
    with events_of(caller.app) as seen:
        for number, do in enumerate(RUNS):
            admin.create_agent(caller.board.engine, "acme", f"a{number}")
            caller.send("queue_run", f"a{number}", f"r-{do}", {"do": do, "text": WRITTEN}).get(timeout=60)
        over = "SELECT reason, status, error, result FROM runs WHERE attempt > 0 AND status <> 'claimed'"
        until(lambda: len(caller.board.rows(over)) == len(RUNS) - 1, 60, "all but the one that died")
        told = [endpoint.text(), *stored(office_env)]
    rows = {row["reason"]: row for row in caller.board.rows(over)}
    assert [reason for reason, row in rows.items() if WRITTEN in repr(row)] != []
    assert WRITTEN in rows["r-raise_it"]["error"]
    assert rows["r-return_it"]["result"] == {"said": WRITTEN}
    assert leaks(worker.logs(), seen, *told) == []
    assert "run_retried" in worker.logs()


@pytest.mark.office_worker(concurrency=1, args=ARGS, log_level="DEBUG", queues="admission,execution")
def test_a_handler_that_cannot_be_imported_tells_nothing(start_worker, caller, office_env):
    """OPS-1.3: importing it raises with the text in it."""
    worker = start_worker(env={**DEBUG, "OFFICE_RUN_HANDLER": "tests.canary.broken:handle", "CANARY_TEXT": WRITTEN})
    caller.send("queue_run", "ana", "manual_resume", {"text": WRITTEN}).get(timeout=60)
    until(lambda: any(run["error"] for run in caller.board.runs()), what="the run failed")
    assert WRITTEN in caller.board.runs()[0]["error"]
    assert leaks(worker.logs(), *stored(office_env)) == []


def test_the_search_finds_what_is_written(caller):
    """The canary is found as it is, in JSON, and in the base64 of a message's body."""
    caller.send("queue_run", "ana", "manual_resume", PAYLOAD)
    (message,) = until(lambda: caller.redis.lrange("admission", 0, -1), what="the message")
    assert leaks(message)
    assert leaks(json.dumps(PAYLOAD))
    assert leaks("nothing") == []
    assert len(SOUGHT) == 20
