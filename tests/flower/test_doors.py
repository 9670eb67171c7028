"""Flower with a lock on the door (C31): nothing before the login, and nothing from elsewhere with it."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from tests.flower.flower import CELERY, OFFICE
from tests.nodes.engine import ROOT
from tests.nodes.waiting import until
from tests.nodes.worker import inherited

DOORS = [
    *("/", "/workers", "/tasks", "/task/x", "/broker", "/admissions", "/tasks/datatable", "/metrics", "/nowhere"),
    "/logout",
    *("/api/tasks", "/api/workers", "/api/task/result/x", "/api/queues/length"),
    *("/api/worker/shutdown/{worker}", "/api/worker/pool/restart/{worker}"),
    *("/api/task/apply/office.queue_run", "/api/task/async-apply/office.queue_run", "/api/task/send-task/zork"),
]
SHUTDOWN = "/api/worker/shutdown/{}"
OPENED = ("/", "/workers", "/tasks", "/broker", "/metrics", "/api/tasks")


@pytest.mark.parametrize(("command", "pages"), [(OFFICE, ["/admissions"]), (CELERY, [])], ids=["ours", "plain"])
def test_no_door_opens_without_credentials_or_to_another_machine(start_flower, command, pages):
    """C31: home, task list, worker shutdown and task apply among them, by GET and POST: 401 or 403; loopback alone."""
    flower = start_flower(command=command)
    for door in DOORS:
        for method in ("GET", "POST"):
            for headers in ({}, {"Authorization": "Basic d2F0Y2hlcjp3cm9uZw=="}, {"Origin": "http://evil.example"}):
                body = b'{"args": []}' if method == "POST" else None
                answered = flower.visit(door.format(worker="w"), method=method, login=False, body=body, **headers)
                assert answered.status in (401, 403), (door, method, headers)
                assert "Access-Control-Allow-Origin" not in answered.headers
    assert flower.visit("/healthcheck", login=False).body == "OK"
    for door in (*OPENED, *pages):
        assert flower.visit(door).status == 200, door
    sockets = psutil.Process(flower.node.pid).net_connections(kind="inet")
    listening = {(each.laddr.ip, each.laddr.port) for each in sockets if each.status == psutil.CONN_LISTEN}
    assert listening == {("127.0.0.1", flower.port)}


def test_another_origin_cannot_shut_a_worker_down_and_our_own_can(worker, start_flower):
    """C31: with valid credentials."""
    flower = start_flower()
    until(lambda: worker.hostname() in flower.visit("/api/workers?refresh=1").body, what="the worker in Flower")
    door = SHUTDOWN.format(worker.hostname())
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        assert flower.visit(door, method="POST", body=b"", **headers).status == 403, headers
        assert flower.visit("/api/task/apply/office.queue_run", method="POST", body=b"", **headers).status == 403
    assert worker.container.status == "running"
    assert flower.visit(door, method="POST", body=b"", Origin=f"http://127.0.0.1:{flower.port}").status == 200
    until(lambda: worker.container.status == "exited", what="the worker's end")


@pytest.mark.parametrize(("command", "prefix"), [(OFFICE, ""), (CELERY, "/office")], ids=["ours", "plain"])
def test_no_page_is_shown_in_a_frame_of_another(start_flower, command, prefix):
    """C31: each answer says so: pages, static files, refusals, and what has not changed or is not there."""
    flower = start_flower(*([f"--url_prefix={prefix}"] if prefix else []), command=command)
    doors = (
        "/",
        "/metrics",
        "/healthcheck",
        "/login",
        "/nowhere",
        "/static/css/flower.css",
        "/static/none.css",
        "/api/tasks",
    )
    answers = [
        flower.visit(f"{prefix}{door}", login=login, method=method)
        for door in doors for login in (True, False) for method in ("GET", "HEAD", "POST")
    ]  # fmt: skip
    tag = flower.visit(f"{prefix}/static/css/flower.css").headers["Etag"]
    answers.append(flower.visit(f"{prefix}/static/css/flower.css", **{"If-None-Match": tag}))
    assert {answer.status for answer in answers} >= {200, 304, 401, 403, 404, 405}
    for answer in answers:
        assert answer.headers["X-Frame-Options"] == "DENY", answer
        assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'", answer


OURS = ["--conf=office_tasks/flowerconfig.py"]


@pytest.mark.parametrize(
    ("configuration", "env", "said"),
    [
        ([], {}, "Flower without a login"),
        ([], {"FLOWER_BASIC_AUTH": "me:secret", "FLOWER_UNAUTHENTICATED_API": "true"}, "FLOWER_UNAUTHENTICATED_API"),
        ([], {"FLOWER_BASIC_AUTH": "me:secret", "FLOWER_UNAUTHENTICATED_API": "maybe"}, "FLOWER_UNAUTHENTICATED_API"),
        (OURS, {"FLOWER_BASIC_AUTH": "me:secret,you:"}, "Flower without a login"),
        (OURS, {"FLOWER_AUTH": ".*@example.com"}, "Flower without a login"),
    ],
)
def test_the_plain_command_does_not_start_open_either(office_env, configuration, env, said):
    """C31: no password, no Flower; and none with the switch that opens its API."""
    words = [sys.executable, "-m", "celery", "--app=office_tasks", "flower", "--port=0", *configuration]
    ours = {name: value for name, value in inherited().items() if not name.startswith("FLOWER_")}
    done = subprocess.run(
        words, cwd=ROOT, env={**ours, **office_env, **env}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr + done.stdout
