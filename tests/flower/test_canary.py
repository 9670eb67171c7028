"""What callers wrote is in no page, no API answer, no event and no log; nor is any password (OPS-1.1, OPS-4)."""

from __future__ import annotations

import json
from contextlib import contextmanager
from threading import Event, Thread
from urllib.parse import quote, urlsplit

import pytest
from celery import Celery
from celery.events import EventReceiver
from redis import Redis

from tests.integration.caller import Caller
from tests.nodes.waiting import until

CANARY = "canary-7f3a"
BROKER_PASSWORD = "broker-canary-91c0"
PAYLOAD = {"task_id": "T1", "comment": f"{CANARY} said", "actor_type": "agent", "actor_id": "bob"}
CALLS = [
    ("create_task", ["acme", f"{CANARY} title"], {"task_id": "T1", "step_id": "start"}),
    ("onboard_task", ["acme", "bob", f"{CANARY} title"], {}),
    ("queue_run", ["ana", "manual_resume", PAYLOAD], {}),
    ("queue_run", [], {"agent_profile_id": "ana", "reason": "manual_resume", "payload": {CANARY: CANARY}}),
    ("queue_run", ["nobody", "manual_resume", PAYLOAD], {}),
    ("queue_run", ["ana", "manual_resume", {CANARY: "\0"}], {}),
    ("queue_run", ["ana", "manual_resume", PAYLOAD, "k", f"{CANARY} too many"], {}),
    ("spawn_run", [None, "ana", "manual_resume", PAYLOAD], {}),
    ("add_comment", ["T1", "c1", f"{CANARY} body @bob", "user", "me"], {}),
    ("set_task_status", ["T1", "in_review"], {"comment_id": "c2", "comment_body": f"{CANARY} body"}),
    ("pause_workspace", ["acme", f"{CANARY} is why"], {}),
]


@pytest.fixture
def office_env(office_env, broker):
    """A broker that wants a password, which Flower and workers then know."""
    client = broker.container.client
    client.config_set("requirepass", BROKER_PASSWORD)
    url = urlsplit(office_env["OFFICE_BROKER_URL"].split(";")[0])
    guarded = f"redis://:{BROKER_PASSWORD}@{url.hostname}:{url.port}/0"
    return office_env | {"OFFICE_BROKER_URL": guarded, "OFFICE_LOG_LEVEL": "DEBUG"}


@pytest.fixture
def asking(office_env, board):
    """Who asks, with the broker's password; by name, as an app that does not import us."""
    app = Celery("elsewhere", broker=office_env["OFFICE_BROKER_URL"], backend=office_env["OFFICE_RESULT_BACKEND"])
    app.conf.update(task_default_queue="admission", task_send_sent_event=False)
    redis = Redis.from_url(office_env["OFFICE_BROKER_URL"])
    yield Caller(app, redis, board)
    redis.close()
    app.close()


@contextmanager
def events_of(app):
    """Yield the list of all events that workers send meanwhile."""
    seen, over = [], Event()

    def listen():
        with app.connection() as connection:
            receiver = EventReceiver(connection, handlers={"*": seen.append}, app=app)
            for _ in receiver.itercapture(limit=None, timeout=1, wakeup=True):
                if over.is_set():
                    break

    def until_over():
        while not over.is_set():
            try:
                listen()
            except TimeoutError:
                continue

    listener = Thread(target=until_over, daemon=True)
    listener.start()
    yield seen
    over.set()
    listener.join(timeout=10)


def ask_everything(caller):
    """Send every kind of text, known and unknown, readable and not; return the ids of the messages."""
    asked = [caller.send(name, *args, **kwargs) for name, args, kwargs in CALLS]
    asked.append(caller.app.send_task("zork", [CANARY], {CANARY: CANARY}))
    asked.append(caller.push([["ana", "manual_resume", PAYLOAD], {}, {}], headers={"argsrepr": CANARY}))
    asked.append(caller.push("{" + CANARY))
    asked.append(caller.push([[CANARY], {}, [CANARY]]))
    for each in asked:
        each.get(timeout=60, propagate=False)
    return [each.id for each in asked]


def everything_flower_tells(flower, worker, ids):
    for name, args, kwargs in CALLS[2:4]:
        body = json.dumps({"args": args, "kwargs": kwargs}).encode()
        yield flower.visit(f"/api/task/async-apply/office.{name}", method="POST", body=body).body
    for path in (
        "/",
        "/workers?json=1",
        "/broker",
        "/tasks",
        "/admissions",
        "/metrics",
        "/api/tasks",
        "/api/task/types",
    ):
        yield flower.visit(path).body
    yield flower.visit("/api/workers?refresh=1").body
    yield flower.visit(f"/worker/{quote(worker.hostname())}").body
    order = "draw=1&start=0&length=100&search[value]=&order[0][column]=0&columns[0][data]=name&order[0][dir]=asc"
    yield flower.visit("/tasks/datatable", method="POST", body=order.encode()).body
    for message_id in ids:
        for path in ("/task/", "/api/task/info/", "/api/task/result/"):
            yield flower.visit(f"{path}{message_id}").body
    yield flower.visit(f"/api/tasks?search={CANARY}").body
    yield flower.node.logs().decode()


@pytest.mark.office_worker(log_level="DEBUG", args=("--without-gossip", "--without-mingle", "--task-events"))
def test_nothing_tells_what_was_written(start_flower, start_worker, asking):
    worker = start_worker()
    flower = start_flower("--logging=debug")
    with events_of(asking.app) as seen:
        until(lambda: worker.hostname() in flower.visit("/api/workers?refresh=1").body, what="the worker in Flower")
        ids = ask_everything(asking)
        until(lambda: len(json.loads(flower.visit("/api/tasks").body)) >= len(CALLS) + 3, what="Flower's tasks")
        told = list(everything_flower_tells(flower, worker, ids))
    found = {event["uuid"]: event for event in seen if event["type"] == "task-received"}
    assert found[ids[2]]["args"] == f"('ana', 'manual_resume', '<payload, {len(json.dumps(PAYLOAD))} bytes>')"
    for said in (*told, repr(seen), worker.logs()):
        lines = [line[:400] for line in said.splitlines() if CANARY in line or BROKER_PASSWORD in line]
        assert lines == []
    assert "cookie_secret" not in flower.node.logs().decode()
    assert any("<comment_body, " in said for said in told)
    assert any('"outcome": "queued"' in said and '"state": "SUCCESS"' in said for said in told)


@pytest.mark.office_worker(concurrency=1, log_level="INFO")
def test_a_worker_that_is_asked_shows_no_more(start_worker, asking):
    """What waits and what runs is told by `celery inspect` and on Flower's page of the worker."""
    worker = start_worker()
    with asking.board.engine.begin() as connection:
        connection.exec_driver_sql("LOCK TABLE wakes, runs IN ACCESS EXCLUSIVE MODE")
        first = asking.send("queue_run", "ana", "manual_resume", PAYLOAD)
        asking.send("queue_run", "ana", "manual_resume", PAYLOAD)
        inspect = asking.app.control.inspect([worker.hostname()], timeout=10)
        active = until(lambda: (inspect.active() or {}).get(worker.hostname()), what="what it works on")
        told = [active, inspect.reserved(), inspect.query_task(first.id), inspect.scheduled(), inspect.conf()]
    assert "<payload, " in repr(active)
    assert [each for each in told if CANARY in repr(each) or BROKER_PASSWORD in repr(each)] == []
