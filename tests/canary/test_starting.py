"""What processes say when they cannot start, or their servers are away or refuse them: a sentence, and no secret."""

from __future__ import annotations

import socket
from itertools import cycle

import psycopg
import pytest
from sqlalchemy import make_url

from office_tasks.devstack import Postgres
from office_tasks.devstack.ports import pick
from office_tasks.settings import SettingsError, load
from tests.canary import hidden
from tests.canary.hidden import leaks
from tests.databases import plain
from tests.nodes.engine import ROOT
from tests.nodes.verbs import wait_for_log
from tests.nodes.waiting import until
from tests.nodes.worker import inherited

SAMPLE = str(ROOT / "tests/data/sample_assignments.csv")

DATABASE = f"postgresql+psycopg://office:{hidden.DATABASE}"
# (variable, value, words of the sentence)
BAD = {
    "no number": ("OFFICE_CONCURRENCY", "none", "must be a whole number, at least 1 and at most 256"),
    "limits": ("OFFICE_TIME_LIMIT", "60", "OFFICE_TIME_LIMIT < "),
    "driver": ("OFFICE_DATABASE_URL", f"mysql://office:{hidden.DATABASE}@localhost/office", "must begin with"),
    "no database url": ("OFFICE_DATABASE_URL", f"office:{hidden.DATABASE}", "is no URL"),
    "database port": ("OFFICE_DATABASE_URL", f"{DATABASE}@localhost:x/office", "is no URL"),
    "an @ in the database's password": ("OFFICE_DATABASE_URL", f"{DATABASE[:-4]}@2e41@127.0.0.1:1/office", "%40"),
    "an @ and a / in it": ("OFFICE_DATABASE_URL", f"postgresql+psycopg://o:1@x/{hidden.DATABASE}@localhost/o", "%40"),
    "an @ and a ? in it": ("OFFICE_DATABASE_URL", f"postgresql+psycopg://o:1@x?{hidden.DATABASE}@localhost/o", "%40"),
    "database option": ("OFFICE_DATABASE_URL", f"{DATABASE}@localhost/office?bogus=1", 'connection option "bogus"'),
    "no broker url": ("OFFICE_BROKER_URL", f"redis:{hidden.BROKER}@localhost", "is no URL"),
    "a broker url within": ("OFFICE_BROKER_URL", f"redis:{hidden.BROKER}@localhost/0?x=redis://y", "is no URL"),
    "broker scheme": ("OFFICE_BROKER_URL", f"zork://:{hidden.BROKER}@localhost/0", "zork://"),
    "broker port": ("OFFICE_BROKER_URL", f"redis://:{hidden.BROKER}@localhost:x/0", "port"),
    "broker number": ("OFFICE_BROKER_URL", f"redis://:{hidden.BROKER}@localhost/x", "number"),
    "a / in the broker's password": ("OFFICE_BROKER_URL", f"redis://:1/{hidden.BROKER}@localhost/0", "%2F"),
    "a # in the backend's password": ("OFFICE_RESULT_BACKEND", f"redis://:1#{hidden.BACKEND}@localhost/0", "%23"),
    "a ? in the stream's password": ("OFFICE_EVENTS_URL", f"redis://:1?{hidden.BROKER}@localhost/0", "%3F"),
    "backend": ("OFFICE_RESULT_BACKEND", f"zork://:{hidden.BACKEND}@localhost/0", "zork://"),
    "stream": ("OFFICE_EVENTS_URL", f"http://:{hidden.BROKER}@localhost/0", "http://"),
    "results for ever": ("OFFICE_RESULT_EXPIRES", "99999999999999999", "at least 60 and at most 31536000"),
    "handler": ("OFFICE_RUN_HANDLER", "zork", "package.module:function"),
    "log level": ("OFFICE_LOG_LEVEL", "LOUD", "OFFICE_LOG_LEVEL: must be DEBUG, INFO, WARNING or ERROR"),
    "address": ("OFFICE_METRICS_ADDRESS", "here", "must be an IP address"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_setting_that_cannot_work_is_one_sentence(monkeypatch, bad):
    """OPS-1.3, OPS-2: the variable is named, and no secret is in it."""
    variable, value, words = bad
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError) as refused:
        load()
    said = str(refused.value)
    assert said.startswith((variable, "OFFICE_SOFT_TIME_LIMIT <"))
    assert words in said
    assert (leaks(said), said.count("\n")) == ([], 0)


@pytest.mark.parametrize("command", ["worker", "beat", "flower", "inspect ping", "report", "purge -f"])
def test_so_it_is_whatever_celery_is_asked_to_do(run, command):
    """OPS-1.3, OPS-2: no trace stands before the sentence."""
    said = run("celery", *command.split(), OFFICE_BROKER_URL=f"redis://:{hidden.BROKER}@localhost:x/0")
    assert (said.code, said.out) == (1, "")
    assert said.err == "office: OFFICE_BROKER_URL: its port is no number from 0 to 65535\n"


@pytest.fixture
def strict_server():
    """A server that asks for a password."""
    with Postgres(durable=False) as postgres:
        conninfo = make_url(postgres.url).set(drivername="postgresql").render_as_string()
        with psycopg.connect(conninfo, autocommit=True) as admin:
            admin.execute(f"CREATE ROLE office LOGIN PASSWORD '{hidden.DATABASE}'")
            (postgres.cluster / "pg_hba.conf").write_text("host all all 127.0.0.1/32 scram-sha-256\n")
            admin.execute("SELECT pg_reload_conf()")
        yield make_url(postgres.url).set(username="office", password=hidden.DATABASE)


@pytest.fixture
def mute():
    """The port of a server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.timeout(300)
def test_a_database_that_refuses_hears_no_secret_told(run, strict_server, subtests):
    """OPS-1.3, OPS-4: wrong password, no such database, closed port, a schema that is not there."""
    other = strict_server.set(password=hidden.FLOWER)
    pairs = cycle((("run list", "doctor"), ("status", f"replay {SAMPLE}")))
    for commands, (name, url, said) in zip(pairs, (
        ("wrong password", other, "password authentication failed"),
        ("no such database", strict_server.set(database="nowhere"), "does not exist"),
        ("closed port", strict_server.set(port=1), "refused"),
        ("no schema", strict_server, "migrate"),
    ), strict=False):  # fmt: skip
        for command in commands:
            with subtests.test(name, command=command.split()[0]):
                told = run(*command.split(), OFFICE_DATABASE_URL=plain(url))
                assert told.code in (1, 2), told
                assert said in told.err or command == "doctor", "it has words of its own"
                assert "Traceback" not in told.err
                assert leaks(told.err, told.out) == []


@pytest.mark.timeout(300)
def test_a_broker_that_refuses_hears_no_secret_told(run, office_env, mute, subtests):
    """OPS-1.3, OPS-4: wrong password, closed port, a broker that never answers; ours and Celery's own commands."""
    right = office_env["OFFICE_BROKER_URL"]
    pairs = cycle((("status", "celery inspect ping"), ("doctor", f"replay --via-celery {SAMPLE}")))
    for commands, (name, url) in zip(pairs, (
        ("wrong password", right.replace(hidden.BROKER, hidden.FLOWER)),
        ("closed port", f"redis://:{hidden.BROKER}@127.0.0.1:1/0"),
        ("silent", f"redis://:{hidden.BROKER}@127.0.0.1:{mute}/0"),
        ("amqp", f"amqp://office:{hidden.BROKER}@127.0.0.1:1//"),
    ), strict=False):  # fmt: skip
        for command in commands:
            with subtests.test(name, command=" ".join(command.split()[:2])):
                told = run(*command.split(), OFFICE_BROKER_URL=url)
                assert "Traceback" not in told.err
                assert leaks(told.err, told.out) == []


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_processes_that_start_say_no_secret(node_engine, office_env, tmp_path, level):
    """OPS-1.3, OPS-4: worker, beat and Flower, by our command and by Celery's own, with all that they say of
    themselves at their start and at their end."""
    schedule = f"--schedule={tmp_path / 'schedule'}"
    started = [
        ("ready.", ("worker", "-c", "1")),
        ("ready.", ("celery", "worker", "-c", "1", "-l", level)),
        ("Sending due task", ("beat", schedule, "--pidfile=")),
        ("Sending due task", ("celery", "beat", f"{schedule}-2", "--pidfile=", "-l", level)),
        ("Visit me", ("flower", f"--port={pick()}", f"--logging={level.lower()}", f"--cookie_secret={hidden.WRITTEN}")),
        ("Visit me", ("celery", "flower", f"--port={pick()}", f"--logging={level.lower()}")),
    ]
    env = {**inherited(), **office_env, "OFFICE_LOG_LEVEL": level, "FLOWER_BROKER_API": broker_api()}
    nodes = [node_engine.run(hidden.program(*words), name=words[0], env=env) for _, words in started]
    for (mark, words), node in zip(started, nodes, strict=True):
        until(lambda mark=mark, node=node: mark in node.logs().decode(), 60, f"{words}: {mark}")
        node.kill("SIGTERM")
        node.wait(timeout=60)
        assert leaks(node.logs()) == []
        assert b"maintenance notifications" not in node.logs(), "a line of each connection that says nothing"


def broker_api() -> str:
    """Return what a RabbitMQ's management would have: Flower says that it is there."""
    return f"http://guest:{hidden.BROKER}@127.0.0.1:1/api/"


@pytest.mark.office_worker(concurrency=1, log_level="DEBUG")
def test_a_worker_whose_postgres_refuses_it_tells_no_secret(start_worker, caller, strict_server):
    """OPS-1.3: a wrong password is no reason to repeat it: the message is retried, and the log says why."""
    url = plain(strict_server.set(password=hidden.FLOWER))
    worker = start_worker(env={"OFFICE_DATABASE_URL": url, "OFFICE_LOG_LEVEL": "DEBUG"})
    caller.send("queue_run", "ana", "manual_resume", {"text": hidden.WRITTEN})
    wait_for_log(worker, "password authentication failed")
    assert leaks(worker.logs()) == []


@pytest.mark.parametrize("which", ["OFFICE_BROKER_URL", "OFFICE_RESULT_BACKEND"])
def test_a_worker_whose_redis_refuses_it_tells_no_secret(node_engine, office_env, caller, which):
    """OPS-1.3: of the broker and of the result backend."""
    wrong = office_env[which].replace(hidden.BROKER, hidden.FLOWER).replace(hidden.BACKEND, hidden.FLOWER)
    env = {**inherited(), **office_env, which: wrong, "OFFICE_LOG_LEVEL": "DEBUG"}
    node = node_engine.run(hidden.program("worker", "-c", "1"), name="worker", env=env)
    caller.send("queue_run", "ana", "manual_resume", {"text": hidden.WRITTEN})
    until(lambda: "invalid username-password pair" in node.logs().decode(), 60, "what Redis says")
    assert leaks(node.logs()) == []
