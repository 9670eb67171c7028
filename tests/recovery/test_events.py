"""Events out: rows of the mutation, then entries of a stream, in order, at least once, naming what changed (PRO-7)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from threading import Barrier

import pytest
from redis import Redis

from office_tasks import app, stream
from office_tasks.devstack import Redis as RedisServer
from office_tasks.faults import ENVIRONMENT
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.comments import add_comment
from office_tasks.producers.creation import create_task
from office_tasks.producers.statuses import set_task_status
from office_tasks.producers.steps import enter_step
from office_tasks.stream import NAME, EventStream
from recovery.relay import relay_once
from tests.faults.waits import holding, in_background
from tests.integration.faults import Fault
from tests.nodes.engine import ROOT
from tests.nodes.waiting import until
from tests.support import T0, after


@pytest.fixture(scope="module")
def redis_server():
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis(redis_server):
    """An empty Redis."""
    redis_server.start()
    client = Redis.from_url(redis_server.url, decode_responses=True)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def out(redis, redis_server):
    """The way out to it."""
    made = EventStream(redis_server.url)
    yield made
    made.close()


def entries(redis):
    return [fields for _, fields in redis.xrange(NAME)]


def sent(board):
    return [row["sent_at"] is not None for row in board.rows("SELECT sent_at FROM events ORDER BY id")]


def make(board, count, task="T"):
    for number in range(count):
        create_task(
            board.engine, f"{task}{number}", "acme", "x", task_id=f"{task}{number}", step_id="start", instant=T0
        )


def test_every_event_says_what_changed_and_nothing_more(board, redis, out):
    """PRO-7.1, PRO-7.2: the names of what changed; no assignee, no generation, no status, no comment."""
    create_task(board.engine, "m1", "acme", "x", task_id="T1", step_id="start", assignee_id="ana", instant=T0)
    assign_task(board.engine, "m2", "T1", "bob", "ana", after(seconds=1))
    set_task_status(board.engine, "m3", "T1", "in_progress", instant=after(seconds=2))
    add_comment(board.engine, "m4", "T1", "C1", "a secret", "user", "u", after(seconds=3))
    enter_step(board.engine, "m5", "T1", "wait", 7, after(seconds=4))
    assert relay_once(board.engine, out)["published"] == 5
    said = entries(redis)
    assert [set(each) for each in said] == [{"id", "type", "task_id", "changed", "at"}] * 5
    assert [(each["type"], each["changed"]) for each in said] == [
        ("task_created", said[0]["changed"]),
        ("task_assignee_changed", "assignee"),
        ("task_status_changed", "status"),
        ("task_commented", "comments"),
        ("task_step_changed", "step"),
    ]
    assert {each["task_id"] for each in said} == {"T1"}
    told = json.dumps([{**each, "task_id": ""} for each in said])
    assert [word for word in ("ana", "bob", "secret", "in_progress", "generation", "acme", "C1") if word in told] == []


def test_an_event_stands_and_falls_with_its_mutation(board, cut_off):
    """PRO-7.1: the row is written in the mutation's own transaction."""
    make(board, 1)
    cut_off(assign_task, board.engine, "m", "T0", "ana", "", T0, point="before_commit")
    assert [row["type"] for row in board.rows("SELECT type FROM events")] == ["task_created"]
    cut_off(assign_task, board.engine, "m", "T0", "ana", "", T0, point="after_commit")
    assert [row["mutation_id"] for row in board.rows("SELECT mutation_id FROM events ORDER BY id")] == ["T0", "m"]


def test_they_go_out_by_id_in_bounded_passes_and_once(board, redis, out):
    """PRO-7.1: in the order of their ids, so in order per task; the next pass goes on where this one ended."""
    make(board, 7)
    assert [relay_once(board.engine, out, events=3)["published"] for _ in range(4)] == [3, 3, 1, 0]
    ids = [int(each["id"]) for each in entries(redis)]
    assert ids == [row["id"] for row in board.rows("SELECT id FROM events ORDER BY id")]
    assert all(sent(board))


def test_changes_of_one_task_at_once_go_out_in_their_order(board, redis, out):
    """PRO-7.1: eight at once on one task: the stream tells them in the order in which they were committed."""
    make(board, 1)
    with in_background() as start:
        calls = [start(assign_task, board.engine, f"m{n}", "T0", ("ana", "bob")[n % 2]) for n in range(8)]
        while not all(call.done() for call in calls):
            relay_once(board.engine, out)
    relay_once(board.engine, out)
    by_generation = board.rows(
        "SELECT e.id FROM events e JOIN mutations m ON m.id = e.mutation_id WHERE m.kind = 'assign_task' "
        "ORDER BY m.generation"
    )
    assert [int(each["id"]) for each in entries(redis)][1:] == [row["id"] for row in by_generation]


def test_one_relay_at_a_time(board, redis, out):
    """PRO-7.1: while one holds the turn another publishes nothing; one that dies gives it back."""
    make(board, 3)
    with holding(board.engine, "SELECT pg_advisory_xact_lock(hashtext('office.events'))") as held:
        assert relay_once(board.engine, out)["published"] == 0
        held.rollback()
    assert relay_once(board.engine, out)["published"] == 3


def test_two_relays_at_once_say_each_event_once(board, make_test_engine, redis, out):
    """PRO-7.1, REC-3.4: two passes over sixty events from two connections, twenty at a time."""
    make(board, 60)
    start = Barrier(2)

    def publish(engine):
        start.wait(10)
        while not all(sent(board)):
            relay_once(engine, out, events=20)

    with in_background() as submit:
        for call in [submit(publish, make_test_engine()) for _ in range(2)]:
            call.result(60)
    ids = [int(each["id"]) for each in entries(redis)]
    assert ids == sorted(set(ids))
    assert len(ids) == 60


def test_an_unreachable_stream_loses_nothing_and_holds_up_no_wake(board, leave_owed, at, redis_server, redis, out):
    """PRO-6.2, PRO-7.1: Redis away: the wakes are admitted all the same, and the events wait for it."""
    leave_owed(1)
    redis_server.kill()
    done = relay_once(at(minutes=1), out)
    assert (done["settled"], done["published"], sent(board)) == (1, 0, [False, False])
    redis_server.start()
    assert relay_once(at(minutes=1), out)["published"] == 2
    assert [each["type"] for each in entries(redis)] == ["task_created", "task_assignee_changed"]


def test_the_stream_is_bounded(board, redis, out, monkeypatch):
    """PRO-7.1: about so many entries stay, the newest."""
    monkeypatch.setattr(stream, "LENGTH", 100)
    board.execute(
        "INSERT INTO mutations (id, kind, actor_type, facts, committed_at) VALUES ('m','x','user','{}',now())"
    )
    board.execute(
        "INSERT INTO events (mutation_id, task_id, type, changed, created_at) "
        "SELECT 'm', 'T' || n, 'task_created', '{}', now() FROM generate_series(1, 1000) n"
    )
    assert relay_once(board.engine, out, events=1_000)["published"] == 1_000
    left = [int(each["id"]) for each in entries(redis)]
    assert 100 <= len(left) < 300
    assert left[-1] == board.rows("SELECT max(id) AS last FROM events")[0]["last"]


RELAY = """
import sys
from office_tasks.stream import EventStream
from recovery.relay import relay_once
from db.engine import make_engine
print(relay_once(make_engine(sys.argv[1]), EventStream(sys.argv[2])), flush=True)
"""


def test_killed_between_append_and_mark_they_are_said_again(board, database_url, redis, redis_server, tmp_path, out):
    """PRO-7.1, PRO-6.2: kill -9 when Redis has them and Postgres does not know: at least once, again in order."""
    make(board, 3)
    kill = Fault("kill", tmp_path / "kill")
    kill.once()
    done = subprocess.run(
        [sys.executable, "-c", RELAY, database_url, redis_server.url],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), ENVIRONMENT: kill.at("events_appended")},
        timeout=60, check=False, capture_output=True,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (len(entries(redis)), sent(board)) == (3, [False] * 3)
    until(lambda: relay_once(board.engine, out)["published"] == 3, 10, "the dead relay's turn")
    ids = [int(each["id"]) for each in entries(redis)]
    assert ids == sorted(set(ids)) * 2
    assert all(sent(board))


def test_nothing_of_ours_reads_the_stream():
    """PRO-7.2: no source reads a stream, and no Celery task hears an event of ours under its name."""
    app.loader.import_default_modules()
    sources = [path for package in ("office_tasks", "recovery", "db") for path in (ROOT / package).rglob("*.py")]
    assert len(sources) > 50
    assert [path.name for path in sources if "xread" in path.read_text().lower()] == []
    heard = {name for name in app.tasks if name.startswith("office.task_")}
    assert heard == {"office.task_created", "office.task_updated"}


def test_an_event_of_ours_that_comes_back_wakes_nobody(board, redis, out, office):
    """PRO-7.2, PRO-3.2: heard as an inbound `task_updated`, with all that it carries, it names nobody to wake."""
    create_task(board.engine, "m1", "acme", "x", task_id="T1", step_id="start", assignee_id="ana", instant=T0)
    assign_task(board.engine, "m2", "T1", "bob", instant=after(seconds=1))
    board.execute("UPDATE runs SET requested_at = requested_at - interval '1 day'")
    relay_once(board.engine, out)
    before = board.count("runs")
    for each in entries(redis):
        answer = app.tasks["office.task_updated"](each["task_id"], each.get("assignee_id"), each.get("generation"))
        assert (answer["outcome"], answer["withheld"]) == ("none", "no_assignee")
    assert board.count("runs") == before
