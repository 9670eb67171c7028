"""What callers wrote is in no page, no API answer, no event and no log; nor is any password (OPS-1.3, OPS-4)."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from office_tasks import admin
from tests.canary.conftest import caller, office_env, role
from tests.canary.hidden import WRITTEN, leaks
from tests.canary.listening import events_of
from tests.canary.saying import CALLS, PAYLOAD, TAKEN, say_everything, say_what_is_taken
from tests.flower.flower import CELERY, OFFICE
from tests.nodes.waiting import until

__all__ = ["caller", "office_env", "role"]

UNKNOWN = json.dumps({"args": ["ana", "r"], "kwargs": {WRITTEN: WRITTEN}})
TWICE = json.dumps({"args": ["ana", f"{WRITTEN} said"], "kwargs": {"reason": f"{WRITTEN} said"}})
PAGES = ("/", "/workers?json=1", "/broker", "/tasks", "/admissions", "/metrics", "/api/tasks", "/api/task/types")
TABLE = "draw=1&start=0&length=1000&search[value]=&order[0][column]=0&columns[0][data]=name&order[0][dir]=asc"


def everything_flower_tells(flower, worker, ids):
    for name, args, kwargs in CALLS[2:4]:
        body = json.dumps({"args": args, "kwargs": kwargs}).encode()
        for how in ("async-apply", "send-task", "apply"):
            yield flower.visit(f"/api/task/{how}/office.{name}", method="POST", body=body).body
    # What it refuses and what it fails at is logged and answered as well.
    for body in (f'{{"args": "{WRITTEN}"}}', f'{{"{WRITTEN}', f'{{"args": [], "{WRITTEN}": 1}}', UNKNOWN, TWICE):
        flower.visit("/api/task/async-apply/office.queue_run", method="POST", body=body.encode())
    for path in PAGES:
        yield flower.visit(path).body
    yield flower.visit("/api/workers?refresh=1").body
    yield flower.visit(f"/worker/{quote(worker.hostname())}").body
    yield flower.visit("/tasks/datatable", method="POST", body=TABLE.encode()).body
    for message_id in ids:
        for path in ("/task/", "/api/task/info/", "/api/task/result/"):
            yield flower.visit(f"{path}{message_id}").body
    yield flower.visit(f"/api/tasks?search={WRITTEN}").body
    yield flower.node.logs().decode()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("command", [pytest.param(OFFICE, id="office"), pytest.param(CELERY, id="celery")])
@pytest.mark.office_worker(log_level="DEBUG", args=("--without-gossip", "--without-mingle", "--task-events"))
def test_nothing_tells_what_was_written(start_flower, start_worker, caller, command):
    """OPS-1.1, OPS-1.3, OPS-4: every error path of a worker, seen through Flower, with our configuration or without."""
    admin.create_agent(caller.board.engine, "acme", "sam", status="stopped")
    worker = start_worker(env={"OFFICE_LOG_LEVEL": "DEBUG"})
    flower = start_flower("--logging=debug", command=command, OFFICE_LOG_LEVEL="DEBUG")
    with events_of(caller.app) as seen:
        until(lambda: worker.hostname() in flower.visit("/api/workers?refresh=1").body, what="the worker in Flower")
        taken = say_what_is_taken(caller)
        ids = say_everything(caller)
        until(lambda: len(json.loads(flower.visit("/api/tasks").body)) >= len(CALLS + TAKEN), what="Flower's tasks")
        told = list(everything_flower_tells(flower, worker, taken + ids))
    found = {event["uuid"]: event for event in seen if event["type"] == "task-received"}
    assert found[ids[2]]["args"] == f"('ana', 'manual_resume', '<payload, {len(json.dumps(PAYLOAD))} bytes>')"
    assert leaks(*told, seen, worker.logs()) == []
    assert any("<task_id, " in said for said in told)
    assert "cookie_secret" not in flower.node.logs().decode()
    assert any("<comment_body, " in said for said in told)
    assert any('"outcome": "queued"' in said and '"state": "SUCCESS"' in said for said in told)
