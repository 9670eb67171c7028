"""An office that is all secrets: every server asks for a password, and every text holds a canary."""

from __future__ import annotations

import subprocess
import uuid
from urllib.parse import urlsplit

import pytest
from celery import Celery
from redis import Redis
from sqlalchemy import make_url

from tests.canary import hidden
from tests.cli.conftest import Said
from tests.databases import plain
from tests.integration.caller import Caller
from tests.integration.conftest import arm, worker
from tests.nodes.engine import ROOT
from tests.nodes.worker import inherited

__all__ = ["arm", "worker"]


@pytest.fixture
def role(board):
    """The role that workers connect as: it has a password, and no more rights than they need (OPS-4)."""
    name = f"office_test_{uuid.uuid4().hex[:12]}"
    board.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{hidden.DATABASE}'")
    board.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}")
    board.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {name}")
    yield name
    board.execute(f"DROP OWNED BY {name}")
    board.execute(f"DROP ROLE {name}")


@pytest.fixture
def office_env(office_env, broker, backend, database_url, role):
    """Settings with a password in each URL, which the servers ask for."""
    return office_env | {
        "OFFICE_DATABASE_URL": plain(make_url(database_url).set(username=role, password=hidden.DATABASE)),
        "OFFICE_BROKER_URL": guarded(office_env["OFFICE_BROKER_URL"], broker, hidden.BROKER),
        "OFFICE_RESULT_BACKEND": guarded(office_env["OFFICE_RESULT_BACKEND"], backend, hidden.BACKEND),
        "FLOWER_BASIC_AUTH": f"watcher:{hidden.FLOWER}",
    }


def guarded(urls, node, password):
    """Have a Redis ask for a password, and return its URL."""
    node.container.client.config_set("requirepass", password)
    url = urlsplit(urls.split(";")[0])
    return f"redis://:{password}@{url.hostname}:{url.port}/0"


@pytest.fixture
def caller(office_env, board):
    """Who asks, by name, as an app that does not import us."""
    app = Celery("elsewhere", broker=office_env["OFFICE_BROKER_URL"], backend=office_env["OFFICE_RESULT_BACKEND"])
    app.conf.update(task_default_queue="admission", task_send_sent_event=False)
    redis = Redis.from_url(office_env["OFFICE_BROKER_URL"])
    yield Caller(app, redis, board)
    redis.close()
    app.close()


@pytest.fixture
def run(office_env, tmp_path):
    """Run a command to its end, with other settings than the office's where they are given."""

    def run(*words: str, **settings: str) -> Said:
        done = subprocess.run(
            hidden.program(*words),
            cwd=tmp_path,
            env={**inherited(), "PYTHONPATH": str(ROOT), **office_env, **settings},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return run
