"""OPS-1.4: `office doctor` against real servers with real faults; each finding says what to do."""

from __future__ import annotations

import json
import uuid

import pytest
import redis
from sqlalchemy import make_url

from db import migrate
from office_tasks.devstack import Postgres, Redis
from office_tasks.devstack.ports import HOST, pick
from office_tasks.doctor import Level, settings
from office_tasks.settings import Settings
from tests.cli.moments import ago, begin
from tests.databases import plain
from tests.recovery.conftest import at  # noqa: F401 - a fixture
from tests.recovery.test_jobs import JOBS
from tests.support import Board

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(autouse=True)
def beginning():
    begin()


@pytest.fixture(scope="module")
def own_broker():
    with Redis() as server:
        yield server


@pytest.fixture
def redis_client(own_broker):
    """The broker's own client; what a test configures is undone."""
    with redis.Redis.from_url(own_broker.url) as client:
        yield client
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("appendonly", "no")


def findings(said):
    """Return what was found by check, each with its level; whatever is not ok says what to do."""
    found = json.loads(said.out)
    assert all(bool(one["advice"]) == (one["level"] != "ok") for one in found)
    assert said.code == int(any(one["level"] == "error" for one in found)), said
    by_check = {}
    for one in found:
        by_check.setdefault(one["check"], []).append((one["level"], one["found"], one["advice"]))
    return by_check


@pytest.fixture
def doctor(run, board, own_broker, at_broker):
    """Run it in this process, on the test's own database and a good broker."""

    def ask(url=own_broker.url):
        at_broker(url)
        return findings(run("doctor", "--json"))

    return ask


@pytest.fixture
def doctor_process(run_process, database_url, own_broker):
    """Run it as a process, with a good database and broker unless the test names others."""

    def ask(**settings):
        given = {"OFFICE_DATABASE_URL": database_url, "OFFICE_BROKER_URL": own_broker.url, **settings}
        said = run_process("doctor", "--json", **given)
        assert said.err == "", said
        return findings(said)

    return ask


def beat_was_seen(board, instant):
    for job in JOBS:
        board.execute("INSERT INTO recovery_jobs VALUES (:job, :at, '{}')", job=job, at=instant)


def test_a_good_installation_has_no_errors(board, doctor):
    beat_was_seen(board, ago(seconds=-60))
    found = doctor()
    levels = {check: sorted({level for level, *_ in told}) for check, told in found.items()}
    assert levels == {
        "settings": ["ok"], "visibility time-out": ["ok"], "retention": ["ok"], "run handler": ["ok"],
        "database": ["ok"], "migrations": ["ok"], "role": ["warn"], "clock": ["ok"], "beat": ["ok"], "broker": ["ok"],
        "Redis eviction": ["ok"], "Redis persistence": ["ok"], "workers": ["warn"], "Flower": ["ok"],
    }  # fmt: skip


def test_people_are_told_the_same(run, board, own_broker, at_broker):
    at_broker(own_broker.url)
    said = run("doctor")
    assert (said.code, said.err) == (0, "")
    assert "ok     database: 127.0.0.1:" in said.out
    assert "warn   workers: no worker answered within a second\n       start workers for every queue" in said.out
    assert said.out.splitlines()[-1].startswith("0 errors, 3 warnings, ")


def test_settings_that_cannot_work(doctor_process):
    found = doctor_process(OFFICE_LOG_LEVEL="LOUD", OFFICE_CONCURRENCY="0")
    assert [level for level, *_ in found["settings"]] == ["error", "error"]
    assert {said.partition(":")[0] for _, said, _ in found["settings"]} == {"OFFICE_LOG_LEVEL", "OFFICE_CONCURRENCY"}
    assert set(found) == {"settings", "Flower"}, "nothing else can be looked at"


def test_a_retention_that_would_change_decisions(doctor_process):
    [(level, said, _)] = doctor_process(OFFICE_RUN_RETENTION_DAYS="30")["settings"]
    assert (level, said.partition(",")[0]) == ("error", "OFFICE_RUN_RETENTION_DAYS must be at least 31")


def test_a_database_that_is_away(doctor_process):
    port = pick()
    [(level, said, advice)] = doctor_process(OFFICE_DATABASE_URL=f"postgresql+psycopg://office@{HOST}:{port}/office")[
        "database"
    ]
    assert (level, advice) == ("error", "start it, or correct OFFICE_DATABASE_URL")
    assert said.startswith(f"{HOST}:{port}/office cannot be worked with: no answer: ")


@pytest.fixture(scope="module")
def guarded():
    """A server that asks the role `clerk` for a password, which is `right`."""
    with Postgres(durable=False) as server:
        board = Board(None)
        from db.engine import make_engine

        board.engine = make_engine(server.url)
        board.execute("CREATE ROLE clerk LOGIN PASSWORD 'right'")
        [[hba]] = [row.values() for row in board.rows("SHOW hba_file")]
        lines = "host all clerk all scram-sha-256\\nhost all postgres all trust"
        board.execute(f"COPY (SELECT unnest(string_to_array(E'{lines}', E'\\n'))) TO '{hba}'")
        board.execute("SELECT pg_reload_conf()")
        board.engine.dispose()
        yield make_url(server.url).set(username="clerk")


@pytest.mark.parametrize(
    ("password", "database", "sentence"),
    [
        ("wrong", "postgres", "refused the password of role clerk"),
        (None, "postgres", "wants a password, and none is given"),
        ("right", "nowhere", "cannot be worked with: no answer: connection failed"),
    ],
)  # fmt: skip
def test_a_password_that_is_wrong_or_missing(doctor_process, guarded, password, database, sentence):
    url = guarded.set(password=password, database=database)
    [(level, said, advice)] = doctor_process(OFFICE_DATABASE_URL=plain(url))["database"]
    assert level == "error"
    assert sentence in said
    assert "OFFICE_DATABASE_URL" in advice
    assert "right" not in said + advice
    assert "wrong" not in said + advice


def test_an_old_schema(board, doctor):
    migrate.downgrade(board.engine, "0002")
    found = doctor()
    assert found["migrations"] == [("error", "the schema is older than this version", "run `office migrate`")]
    assert "beat" not in found


def test_no_schema_at_all(doctor_process, make_database):
    url = make_database()
    assert doctor_process(OFFICE_DATABASE_URL=plain(url))["migrations"][0][0] == "error"
    make_database.drop(url)


def test_a_newer_schema(board, doctor):
    board.execute("UPDATE alembic_version SET version_num = '9999'")
    assert doctor()["migrations"][0][:2] == ("error", "the schema is newer than this version")


@pytest.fixture
def clerk(board):
    """A role of the test's own server that may log in, and nothing else."""
    name = f"clerk_{uuid.uuid4().hex[:8]}"
    board.execute(f"CREATE ROLE {name} LOGIN")
    yield name
    board.execute(f"DROP OWNED BY {name}")
    board.execute(f"DROP ROLE {name}")


def test_a_role_that_reads_and_writes_and_changes_nothing_else(board, doctor_process, database_url, clerk):
    """OPS-4: the worker's role needs no DDL."""
    url = plain(make_url(database_url).set(username=clerk))
    found = doctor_process(OFFICE_DATABASE_URL=url)
    assert found["migrations"][0][:2] == ("warn", "the role may not read alembic_version, so nobody can tell")
    [(level, said, advice)] = found["role"]
    assert [level for level, *_ in found["database"]] == ["ok"], "what it may not read is no other fault"
    assert level == "error"
    assert "may not read and write agents, " in said
    assert advice.endswith(f'TO "{clerk}"')
    board.execute(advice)
    assert doctor_process(OFFICE_DATABASE_URL=url)["role"] == [
        ("ok", f"role {clerk} may read and write rows, and change no schema", "")
    ]
    board.execute(f"GRANT CREATE ON SCHEMA public TO {clerk}")
    assert doctor_process(OFFICE_DATABASE_URL=url)["role"][0][0] == "warn"


def test_clocks_that_disagree(doctor, office, at, monkeypatch):  # noqa: F811 - the fixture
    """The office's clock is in Postgres: this machine is months off it."""
    monkeypatch.setitem(office.__dict__, "engine", at())
    [(level, said, advice)] = doctor()["clock"]
    assert (level, "ahead of Postgres" in said) == ("warn", True)
    assert advice.startswith("synchronize both")


def test_a_beat_that_is_seen_no_more(board, doctor):
    """C37: the last success went stale, which fails a health check; a job that was never seen warns."""
    beat_was_seen(board, ago(minutes=30))
    board.execute("DELETE FROM recovery_jobs WHERE job = 'recovery.relay_owed'")
    late, never = doctor()["beat"]
    assert late[:2] == ("error", late[1])
    assert "recovery.recover_unstarted_tasks" in late[1]
    assert "recovery.purge_history" not in late[1]
    assert never[:2] == ("warn", "recovery.relay_owed never succeeded here")


def test_a_stopped_broker(doctor):
    url = f"redis://:hush@{HOST}:{pick()}/0"
    found = doctor(url)
    [(level, said, advice)] = found["broker"]
    assert (level, advice) == ("error", "start it, or correct OFFICE_BROKER_URL")
    assert "hush" not in said
    assert "workers" not in found


def test_no_password_of_several_brokers_is_told(run, at_broker):
    """OPS-1.3, OPS-4: of a broker and of those that stand in for it."""
    at_broker(";".join(f"redis://:{word}-hush@{HOST}:{pick()}/0" for word in ("first", "second", "third")))
    for words in (("doctor",), ("doctor", "--json"), ("status",), ("status", "--json")):
        said = run(*words)
        assert "hush" not in said.out + said.err
        assert (words[0] == "status") == (said.code == 0)


def test_a_redis_that_evicts(doctor, redis_client):
    redis_client.config_set("maxmemory-policy", "allkeys-lru")
    [(level, said, advice)] = doctor()["Redis eviction"]
    assert (level, said.partition(":")[0]) == ("error", "the policy is allkeys-lru")
    assert "maxmemory-policy noeviction" in advice


def test_what_redis_keeps_is_told(doctor, redis_client):
    assert doctor()["Redis persistence"][0][1].startswith("it keeps no log on disk")
    redis_client.config_set("appendonly", "yes")
    assert doctor()["Redis persistence"] == [("ok", "it keeps a log on disk (appendonly)", "")]


def test_a_result_backend_that_is_away(doctor_process):
    found = doctor_process(OFFICE_RESULT_BACKEND=f"redis://:hush@{HOST}:{pick()}/0")
    assert (found["results"][0][0], "hush" in found["results"][0][1]) == ("error", False)


@pytest.mark.parametrize("handler", ["nowhere.at:all", "tests.execution.broken_import:work", "json:__doc__"])
def test_a_handler_that_cannot_be_used(doctor_process, handler):
    [(level, said, _)] = doctor_process(OFFICE_RUN_HANDLER=handler)["run handler"]
    assert (level, said.startswith(f"OFFICE_RUN_HANDLER {handler!r} ")) == ("error", True)


@pytest.mark.parametrize(
    ("environment", "levels"),
    [
        ({}, ["ok"]),
        ({"FLOWER_BASIC_AUTH": "a:b"}, ["ok"]),
        ({"FLOWER_BASIC_AUTH": "a:b", "FLOWER_ADDRESS": "127.0.0.1"}, ["ok"]),
        ({"FLOWER_BASIC_AUTH": "a:b", "FLOWER_ADDRESS": "0.0.0.0"}, ["warn"]),
        ({"FLOWER_BASIC_AUTH": "a:b", "FLOWER_UNAUTHENTICATED_API": "true"}, ["warn"]),
        ({"FLOWER_BASIC_AUTH": "a:b", "FLOWER_UNAUTHENTICATED_API": "maybe"}, ["warn"]),
        ({"FLOWER_BASIC_AUTH": "a:b", "FLOWER_UNAUTHENTICATED_API": "off"}, ["ok"]),
        ({"FLOWER_PORT": "5555"}, ["error"]),
        ({"FLOWER_UNAUTHENTICATED_API": "1", "FLOWER_ADDRESS": "::"}, ["error", "error", "warn"]),
    ],
)  # fmt: skip
def test_who_could_reach_flower(environment, levels):
    """OPS-1.1, OPS-4."""
    found = settings.flower(environment)
    assert [finding.level.value for finding in found] == levels
    assert "a:b" not in str(found)


def test_a_visibility_time_out_beyond_the_lease():
    assert settings.limits(Settings(visibility_timeout=60)).level is Level.OK
    assert settings.limits(Settings(visibility_timeout=3_600)).level is Level.WARN


@pytest.mark.office_worker(queues="admission,execution", concurrency=1)
def test_a_pool_that_serves_both_and_a_queue_that_nobody_takes(celery_setup, doctor_process, office_env):
    """Long handlers would hold up admission."""
    celery_setup.worker.ready()
    both = doctor_process(**office_env)["workers"]
    assert [level for level, *_ in both] == ["warn", "warn"]
    assert both[0][1:] == ("no worker takes recovery", "start one: `office worker -Q recovery`")
    assert "serves both admission and execution" in both[1][1]


def test_beat_alone(run, board):
    """OPS-3, C37: a health check of beat: whichever job did something last; one that never ran is no fault."""

    def ask():
        said = run("doctor", "--beat", "--json")
        [finding] = json.loads(said.out)
        assert (finding["check"], said.code) == ("beat", int(finding["level"] == "error"))
        return finding["level"], finding["found"]

    assert ask() == ("error", "no recovery job ever succeeded here")
    board.execute("INSERT INTO recovery_jobs VALUES ('recovery.relay_owed', :at, '{}')", at=ago(seconds=1))
    assert ask()[0] == "ok"
    board.execute("UPDATE recovery_jobs SET succeeded_at = :at", at=ago(minutes=2))
    level, said = ask()
    assert (level, said.partition(" since ")[0]) == ("error", "no recovery job has succeeded")


def test_beat_alone_without_a_database(run_process):
    """OPS-3: what cannot be read is not well; a bad setting is a sentence."""
    away = f"postgresql+psycopg://office@{HOST}:{pick()}/office"
    said = run_process("doctor", "--beat", OFFICE_DATABASE_URL=away)
    assert (said.code, said.out.partition(":")[0], said.err) == (1, "error  database", "")
    said = run_process("doctor", "--beat", OFFICE_LOG_LEVEL="LOUD")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("office: OFFICE_LOG_LEVEL: ")
