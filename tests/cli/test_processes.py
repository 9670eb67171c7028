"""Commands as the processes that a person starts: what they load, how they fail, and what they become."""

from __future__ import annotations

import subprocess
import sys

import pytest

from office_tasks import app
from office_tasks.cli import main
from office_tasks.cli.processes import worker_defaults
from tests.cli.conftest import ROOT, environment
from tests.databases import plain

NOWHERE = "postgresql+psycopg://office:secret@127.0.0.1:1/office"


@pytest.fixture
def empty_database(make_database):
    url = make_database()
    yield plain(url)
    make_database.drop(url)


def test_migrate_brings_an_empty_database_up_and_says_when_there_is_nothing_to_do(run_process, empty_database):
    before = run_process("task", "list", OFFICE_DATABASE_URL=empty_database)
    assert (before.code, before.err.count("\n")) == (1, 1)
    assert "run `office migrate`" in before.err
    for said in ("the schema was brought up to date\n", "the schema is up to date\n"):
        done = run_process("migrate", OFFICE_DATABASE_URL=empty_database)
        assert (done.code, done.out) == (0, said), done.err
    assert run_process("task", "list", "--json", OFFICE_DATABASE_URL=empty_database).out == "[]\n"


def test_a_database_that_does_not_answer_is_one_sentence_without_its_password(run_process):
    said = run_process("agent", "list", OFFICE_DATABASE_URL=NOWHERE)
    assert (said.code, said.out, said.err.count("\n")) == (1, "", 1)
    assert said.err.startswith("office: no connection to the database 127.0.0.1:1/office: start it")
    assert "Connection refused" in said.err
    assert "secret" not in said.err


def test_a_database_that_is_not_there_is_named(run_process, server_url):
    said = run_process("agent", "list", OFFICE_DATABASE_URL=plain(server_url.set(database="office_nowhere")))
    assert (said.code, said.out, said.err.count("\n")) == (1, "", 1)
    assert 'database "office_nowhere" does not exist' in said.err


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OFFICE_CONCURRENCY", "none"),
        ("OFFICE_LOG_LEVEL", "LOUD"),
        ("OFFICE_TIME_LIMIT", "60"),
        ("OFFICE_DATABASE_URL", "mysql://secret@localhost/office"),
        ("OFFICE_DATABASE_URL", "postgresql+psycopg://office:secret@localhost:port/office"),
    ],
)
def test_a_setting_that_cannot_work_is_named(office, monkeypatch, capsys, variable, value):
    monkeypatch.delattr(app, "office")  # as in a process that has read no setting yet
    monkeypatch.setenv(variable, value)
    with pytest.raises(SystemExit) as ended:
        main(["agent", "list"])
    said = capsys.readouterr()
    assert (ended.value.code, said.out, said.err.count("\n")) == (1, "", 1)
    assert variable in said.err
    assert "secret" not in said.err


@pytest.mark.parametrize("words", ["worker", "beat", "flower --basic-auth=me:secret"])
def test_a_wrapper_names_it_too_before_it_becomes_anything(run_process, words):
    said = run_process(*words.split(), OFFICE_CONCURRENCY="none")
    assert (said.code, said.out, said.err.count("\n")) == (1, "", 1)
    assert said.err.startswith("office: OFFICE_CONCURRENCY: ")


def test_help_and_version_load_neither_celery_nor_sqlalchemy():
    program = """
import sys
from office_tasks.cli import main
try:
    main(sys.argv[1:])
finally:
    print("loaded:", *{"celery", "sqlalchemy", "pydantic"} & set(sys.modules), file=sys.stderr)
"""
    for word, shown in (("--help", "Usage"), ("--version", "office-tasks")):
        done = subprocess.run(
            [sys.executable, "-c", program, word],
            env=environment(),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert shown in done.stdout
        assert done.stderr == "loaded:\n"


QUEUES = "--queues=admission,recovery,execution"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("worker -- --help", f"REMAP_SIGTERM=SIGQUIT celery --app=office_tasks worker {QUEUES} --loglevel=INFO --help"),
        ("worker -Q x -lERROR -- --help", "REMAP_SIGTERM=SIGQUIT celery --app=office_tasks worker -Q x -lERROR --help"),
        ("worker -P solo -l ERROR -- --help", f"celery --app=office_tasks worker {QUEUES} -P solo -l ERROR --help"),
        ("beat -- --help", "celery --app=office_tasks beat --loglevel=INFO --help"),
    ],
)
def test_a_wrapper_prints_the_celery_command_and_becomes_it(run_process, given, line):
    said = run_process(*given.split())
    assert (said.code, said.err) == (0, f"{line}\n")
    assert f"{given.split()[0]} [OPTIONS]" in said.out


@pytest.mark.parametrize("given", [["-Q", "x"], ["-Qx"], ["--queues", "x"], ["--queues=x"]])
def test_queues_that_are_given_are_the_only_ones(given):
    assert worker_defaults(given) == ["--loglevel=INFO"]


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ((), {}),
        ((), {"FLOWER_BASIC_AUTH": ""}),
        ((), {"FLOWER_BASIC_AUTH": "me:"}),
        ((), {"FLOWER_BASIC_AUTH": "me:secret,you:"}),
        (("--basic_auth=:secret",), {}),
        (("--basic-auth=",), {}),
        (("--auth=.*",), {}),
    ],
)
def test_flower_does_not_start_open(run_process, words, settings):
    """C31: no password, no Flower."""
    said = run_process("flower", *words, **settings)
    assert (said.code, said.out) == (1, "")
    assert said.err == "office: Flower without a login is open to all: set FLOWER_BASIC_AUTH=user:password\n"


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ("worker --broker=redis://:secret@h/0", "'--broker=***'"),
        ("worker --broker redis://:secret@h/0", "--broker '***'"),
        ("worker -b redis://:secret@h/0", "-b '***'"),
        ("flower --basic-auth=me:secret --cookie_secret=secret", "'--cookie_secret=***'"),
        ("flower --basic-auth=me:secret --broker_api=http://me:secret@h/api", "'--broker_api=***'"),
        ("flower --basic-auth=me:secret --oauth2_secret=secret", "'--oauth2_secret=***'"),
    ],
)
def test_no_secret_of_a_command_line_is_printed(run_process, given, printed):
    """OPS-1.3, OPS-4: the command that a wrapper prints hides what may be a secret."""
    said = run_process(*given.split(), "--", "--help")
    line = said.err.partition("\n")[0]
    assert printed in line
    assert "secret@" not in line
    assert "=secret" not in line
    assert ":secret" not in line


def test_flower_starts_with_our_configuration_and_its_password_is_not_printed(run_process):
    said = run_process("flower", "--basic-auth=me:secret", "--", "--help")
    assert (said.code, said.err) == (
        0,
        f"celery --app=office_tasks flower --conf={ROOT}/office_tasks/flowerconfig.py '--basic-auth=***' --help\n",
    )
