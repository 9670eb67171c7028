"""Two database roles: one that migrates, and one that all else works as, which can change no schema (OPS-4)."""

from __future__ import annotations

import json
import subprocess

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.pool import NullPool

from db import migrate
from db.engine import make_engine
from db.errors import sqlstate
from db.roles import read
from tests.databases import plain
from tests.deploy.services import service
from tests.nodes.engine import ROOT
from tests.nodes.waiting import until
from tests.recovery.test_jobs import JOBS
from tests.support import Board

SCRIPT = ROOT / "ops" / "worker-role.sql"
DDL = (
    "CREATE TABLE mine ()",
    "CREATE ROLE friend",
    "DROP TABLE runs",
    "TRUNCATE runs",
    "ALTER TABLE runs ADD extra int",
    "DROP FUNCTION office_now",
)


class Roles:
    """A new database, its owner, and what the script makes of a third role."""

    def __init__(self, server, url, programs) -> None:
        self.name = url.database
        self.owner = f"owner_{self.name}"
        self.worker = f"worker_{self.name}"
        self._programs = programs
        self._server, self._url = server, url
        with self.admin() as admin:
            admin.execute(text(f"CREATE ROLE {self.owner} LOGIN CREATEROLE"))
            admin.execute(text(f"ALTER DATABASE {self.name} OWNER TO {self.owner}"))

    def admin(self):
        return create_engine(self._server, isolation_level="AUTOCOMMIT", poolclass=NullPool).connect()

    @property
    def superuser(self) -> str:
        return str(self._server.username)

    def password(self) -> str | None:
        """Return what Postgres keeps of the worker's."""
        with self.admin() as admin:
            return admin.scalar(text("SELECT rolpassword FROM pg_authid WHERE rolname = :role"), {"role": self.worker})

    def url(self, role: str) -> str:
        return plain(self._url.set(username=role))

    def script(self, role: str, *words: str, password: str | None = "a-word") -> subprocess.CompletedProcess:
        url = self.url(role).replace("+psycopg", "")
        command = ["psql", "--no-psqlrc", "--quiet", f"--set=worker={self.worker}", f"--file={SCRIPT}", *words, url]
        env = {"PATH": self._programs, **({"POSTGRES_WORKER_PASSWORD": password} if password else {})}
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)

    def remove(self) -> None:
        """Drop them; their database is gone by then, and with it all that they owned and were granted."""
        with self.admin() as admin:
            admin.execute(text(f"DROP ROLE IF EXISTS {self.worker}"))
            admin.execute(text(f"DROP ROLE {self.owner}"))


@pytest.fixture
def roles(server_url, make_database, programs):
    url = make_database()
    made = Roles(server_url, url, programs)
    yield made
    make_database.drop(url)
    made.remove()


@pytest.fixture
def engine_of(roles):
    """Return a function that makes an engine of one of the roles."""
    engines = []

    def make(role):
        engines.append(make_engine(roles.url(role), pool_size=4))
        return engines[-1]

    yield make
    for engine in engines:
        engine.dispose()


def office(roles, role, env, *words):
    env = {**env, "OFFICE_DATABASE_URL": roles.url(role)}
    done = subprocess.run(["office", *words], env=env, capture_output=True, text=True, timeout=100, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def deployed(roles, deployed_env, node_engine, tmp_path):
    """Return a function that starts a service as the worker's role, with the command of compose."""
    started = []

    def start(name):
        env = {**deployed_env, **service(name).environment, "OFFICE_DATABASE_URL": roles.url(roles.worker)}
        command = [word.replace("/tmp", str(tmp_path)) for word in service(name).command]
        # Both would be celery@ this machine's name, as they are at home in two containers.
        command += [f"--hostname={name}@%h"] if "worker" in command else []
        started.append(node_engine.run(command, name=name, env=env))

    yield start
    for handle in started:
        node_engine.remove(handle)


@pytest.mark.timeout(300)
def test_all_works_as_a_role_without_ddl(roles, deployed, deployed_env, celery_setup_app, engine_of):
    """OPS-4: migrated as the owner, all else as the worker's role: wakes, runs, recovery, operators."""
    prepare(roles)
    assert office(roles, roles.owner, deployed_env, "migrate") == (0, "the schema was brought up to date\n", "")
    for name in ("worker", "executor", "beat"):
        deployed(name)
    board = Board(engine_of(roles.worker)).furnish()
    ask(celery_setup_app, "office.create_task", "acme", "Paint", task_id="T1", step_id="start")
    assert ask(celery_setup_app, "office.assign_task", "T1", "ana")["wakes"][0]["outcome"] == "queued"
    until(lambda: [run["status"] for run in board.runs()] == ["finished"], 60, "an executed run")
    ask(celery_setup_app, "office.delete_agent", "bob")
    for job in JOBS:
        ask(celery_setup_app, job, queue="recovery")
    assert service("beat").check == ["office", "doctor", "--beat"]
    assert office(roles, roles.worker, deployed_env, "doctor", "--beat")[0] == 0
    code, said, err = office(roles, roles.worker, deployed_env, "doctor", "--json")
    found = {one["check"]: one["level"] for one in json.loads(said)}
    assert (code, err, set(found.values()), found["role"]) == (0, "", {"ok"}, "ok"), said
    for words in (("status", "--json"), ("why", "T1", "--json"), ("run", "list", "--json"), ("session", "show", "T1")):
        assert office(roles, roles.worker, deployed_env, *words)[::2] == (0, "")


@pytest.mark.parametrize("first", ["0001", "head"])
@pytest.mark.parametrize("superuser", [True, False], ids=["superuser", "owner"])
def test_a_schema_that_was_there_before_the_role(roles, engine_of, first, superuser):
    """OPS-4: an upgrade gives the role what is there, and later migrations what they create."""
    owner, worker = engine_of(roles.owner), engine_of(roles.worker)
    migrate.upgrade(owner, first)
    for _ in range(2):
        prepare(roles, superuser=superuser)
    migrate.upgrade(owner)
    with owner.begin() as connection:
        connection.execute(text("CREATE TABLE later (id int GENERATED ALWAYS AS IDENTITY, n serial, said text)"))
    with worker.begin() as connection:
        connection.execute(text("INSERT INTO later (said) VALUES ('x')"))
        found = read(connection)
    assert (found.missing, found.may_change_schema, found.may_read_versions) == ([], False, True)
    Board(worker).furnish()
    migrate.downgrade(owner)


@pytest.mark.parametrize("statement", DDL)
def test_the_role_changes_no_schema(roles, engine_of, statement):
    """OPS-4: neither new tables nor what is there; and it makes no roles."""
    prepare(roles)
    migrate.upgrade(engine_of(roles.owner))
    with pytest.raises(ProgrammingError) as refused, engine_of(roles.worker).begin() as connection:
        connection.execute(text(statement))
    assert sqlstate(refused.value) == "42501"


def test_a_role_needs_its_password(roles):
    """OPS-4: without one nothing is made; the one that is given is kept as a hash, and given again replaces it."""
    refused = roles.script(roles.owner, password=None)
    assert refused.returncode != 0
    assert "POSTGRES_WORKER_PASSWORD is not set" in refused.stderr
    assert roles.password() is None
    kept = []
    for word in ("first", "o'ther"):
        assert roles.script(roles.owner, password=word).returncode == 0
        kept.append(roles.password())
    assert all(hashed.startswith("SCRAM-SHA-256$") for hashed in kept)
    assert kept[0] != kept[1]


def prepare(roles, *, superuser=True):
    """Run the script, as a superuser who names the owner, or as the owner."""
    words = [f"--set=owner={roles.owner}"] if superuser else []
    done = roles.script(roles.superuser if superuser else roles.owner, *words)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def ask(app, name, *args, queue="admission", **kwargs):
    return app.send_task(name, args, kwargs, queue=queue).get(timeout=60)
