"""The Admissions tab when things are wrong, and what Flower forgets."""

from __future__ import annotations

import pytest

from office_tasks.devstack import Postgres
from tests.nodes.engine import ROOT
from tests.nodes.waiting import until

NOWHERE = "postgresql+psycopg://office:secret-canary@127.0.0.1:1/office"


def test_postgres_away_is_said_on_the_page(start_flower):
    """Neither an error page nor a trace; the tab works again as soon as Postgres does."""
    with Postgres(durable=False) as postgres:
        flower = start_flower(OFFICE_DATABASE_URL=postgres.url)
        unmigrated = flower.visit("/admissions")
        assert unmigrated.status == 503
        assert "42883: function office_now() does not exist" in unmigrated.body
    away = flower.visit("/admissions")
    assert away.status == 503
    assert "Postgres does not answer, so there is nothing to show: no answer: " in away.body
    assert "Connection refused" in away.body
    assert "Traceback" not in away.body + flower.node.logs().decode()


def test_no_password_of_the_database_is_told(start_flower):
    flower = start_flower(OFFICE_DATABASE_URL=NOWHERE)
    assert "no answer: " in flower.visit("/admissions").body
    told = [flower.visit(path).body for path in ("/", "/admissions", "/broker", "/api/workers", "/metrics")]
    assert "secret-canary" not in "".join(told) + flower.node.logs().decode()


def test_it_works_under_a_prefix(start_flower):
    flower = start_flower("--url_prefix=watch")
    assert flower.visit("/watch/admissions", login=False).status == 401
    page = flower.visit("/watch/admissions")
    assert page.status == 200
    assert 'href="/watch/admissions"' in page.body


@pytest.mark.office_worker(concurrency=1, args=("--without-gossip", "--without-mingle", "--task-events"))
def test_a_restarted_flower_has_forgotten_and_the_docs_say_so(start_flower, start_worker, caller, node_engine):
    """R13: its history is no record: the decision still stands in Postgres, and on our tab."""
    start_worker()
    flower = start_flower()
    sent = caller.send("queue_run", "ana", "manual_resume")
    assert sent.get(timeout=60)["outcome"] == "queued"
    until(lambda: sent.id in flower.visit("/api/tasks").body, what="it in Flower's history")
    node_engine.remove(flower.node)
    again = start_flower()
    assert sent.id not in again.visit("/api/tasks").body
    assert "manual_resume" in again.visit("/admissions").body
    assert "It is no record" in (ROOT / "docs/flower.md").read_text()


@pytest.mark.office_worker(concurrency=1)
def test_a_worker_that_is_gone_leaves_the_list_and_the_metrics(start_flower, start_worker):
    """R13: no ghosts after the purge time."""
    worker = start_worker()
    flower = start_flower(FLOWER_PURGE_OFFLINE_WORKERS="1")
    name = worker.hostname()
    until(lambda: name in flower.visit("/metrics").body, what="the worker in the metrics")
    until(lambda: name in flower.visit("/workers?json=1").body, what="the worker in the list")
    worker.container.kill("SIGTERM")
    until(lambda: name not in flower.visit("/metrics").body, what="its end in the metrics")
    until(lambda: name not in flower.visit("/workers?json=1").body, what="its end in the list")
