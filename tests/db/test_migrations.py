"""Migrations: equal to the models, there and back and there again, one at a time, giving way to a live table."""

from __future__ import annotations

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from db import clock, migrate
from db.engine import make_engine
from db.errors import sqlstate
from db.models import Base
from tests.databases import plain
from tests.db.catalog import catalog
from tests.faults.processes import race, upgrade
from tests.faults.waits import holding, in_background, until_blocked
from tests.support import Board, after

# As db/migrations/env.py has it, which only Alembic can import.
ONE_AT_A_TIME = 0x0FF1CE
ADVISORY = "%pg_advisory_xact_lock%"


@pytest.fixture
def empty(make_database):
    """A database without any schema, and a function that makes one more engine on it."""
    url = make_database()
    engines = []

    def connect(**options):
        engines.append(make_engine(plain(url), **{"pool_size": 4, **options}))
        return engines[-1]

    yield connect
    for engine in engines:
        engine.dispose()
    make_database.drop(url)


# Postgres prints a generated column's expression in its own words; the test after this one compares those.
@pytest.mark.filterwarnings("ignore:Computed default on .* cannot be modified:UserWarning")
def test_the_models_are_what_the_migrations_make(engine):
    """`alembic check`: tables, columns, defaults, indexes and keys are the same (8-engineering 20)."""
    with engine.connect() as connection:
        command.check(migrate.config(connection))
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, Base.metadata) == []


def test_the_models_alone_make_the_same_schema(engine, empty):
    """What `alembic check` does not look at: checks, generated columns, partial indexes and their order (ADM-8.1)."""
    made = empty()
    with made.begin() as connection:
        connection.execute(text(clock.CREATE))
        Base.metadata.create_all(connection)

    ours, theirs = catalog(made), catalog(engine)
    for what in ours:
        assert ours[what] == [row for row in theirs[what] if "alembic_version" not in str(row)], what


def test_up_down_and_up_again_is_the_same_schema(empty):
    """Every revision, one by one and back: nothing is left behind, nothing missing afterwards (8-engineering 20)."""
    engine = empty()
    nothing = catalog(engine)
    revisions = [script.revision for script in ScriptDirectory.from_config(migrate.config()).walk_revisions()][::-1]
    seen = []
    for revision in revisions:
        migrate.upgrade(engine, revision)
        seen.append(catalog(engine))
    assert not migrate.pending(engine)
    for revision, expected in zip(reversed([None, *revisions[:-1]]), reversed([None, *seen[:-1]]), strict=True):
        migrate.downgrade(engine, revision or "base")
        assert revision is None or catalog(engine) == expected
    left = {name: [row for row in rows if "alembic_version" not in str(row)] for name, rows in catalog(engine).items()}
    assert left == nothing
    assert migrate.pending(engine)
    migrate.upgrade(engine)
    assert catalog(engine) == seen[-1]


def test_two_upgrades_at_once(empty):
    """R09: the second waits for the first, seen waiting, then finds nothing to do."""
    engine = empty()
    url = engine.url.render_as_string(hide_password=False)
    with holding(engine, f"SELECT pg_advisory_xact_lock({ONE_AT_A_TIME})") as held, in_background() as start:
        call = start(race, 2, upgrade, url)
        until_blocked(engine, count=2, like=ADVISORY)
        held.rollback()
        assert call.result() == [False, False], "nothing is pending for either"

    assert not migrate.pending(empty())


def test_an_upgrade_that_was_interrupted_leaves_nothing(empty):
    """R09, R11: the whole of it is one transaction under a transaction-level lock: undone at once, and free again."""
    engine = empty()
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE runs (here_already int)"))
    with pytest.raises(DBAPIError):
        migrate.upgrade(engine)
    assert [row[0] for row in catalog(engine)["columns"]] == ["runs"]

    with engine.begin() as connection:
        connection.execute(text("DROP TABLE runs"))
    migrate.upgrade(engine)
    assert not migrate.pending(engine)


def test_a_second_run_over_a_live_office_changes_nothing(board, make_test_engine):
    """R09: with rows there and inserts running, an upgrade that has nothing to do blocks nobody and changes nothing."""
    rows = board.engine
    before = catalog(rows)
    with in_background() as start:
        writing = start(lambda: [board.ask(after(minutes=n), key=f"k{n}").outcome for n in range(40)])
        for _ in range(3):
            migrate.upgrade(make_test_engine())
        assert set(writing.result()) == {"queued"}

    assert catalog(rows) == before
    assert board.count("runs") == 40


def test_a_migration_gives_way_to_a_live_table(board, make_test_engine):
    """R09: it waits for a table under 5 s, so inserts behind it wait no longer; it fails, and can be repeated."""
    with holding(board.engine, "SELECT 1 FROM runs") as held, in_background() as start:
        call = start(migrate.downgrade, make_test_engine())
        until_blocked(board.engine, like="%DROP%")
        behind = start(Board(make_test_engine(session={"lock_timeout": "5000"})).ask)
        error = call.exception(timeout=10)
        assert sqlstate(error) == "55P03"
        assert behind.result(timeout=5).outcome == "queued", "the insert that waited behind it went through"
        held.rollback()

    assert not migrate.pending(board.engine), "undone as a whole"
    migrate.downgrade(make_test_engine())
    assert migrate.pending(board.engine)


def test_duplicate_keys_give_a_clear_message(empty):
    """R09: a table with two rows of one key cannot take the unique index; the error names index and key."""
    engine = empty()
    migrate.upgrade(engine)
    with engine.begin() as connection:
        connection.execute(text("DROP INDEX uq_runs_idempotency_key"))
        connection.execute(
            text(
                "INSERT INTO runs (id, agent_profile_id, reason, payload, idempotency_key, requested_at) "
                "SELECT gen_random_uuid(), 'ana', 'r', '{}', 'twice', now() FROM generate_series(1, 2)"
            )
        )
    bare = create_engine(engine.url, poolclass=NullPool)
    (index,) = (index for index in Base.metadata.tables["runs"].indexes if index.name == "uq_runs_idempotency_key")
    with pytest.raises(DBAPIError) as caught, bare.begin() as connection:
        index.create(connection)

    assert caught.value.orig.diag.constraint_name == "uq_runs_idempotency_key"
    assert "twice" in caught.value.orig.diag.message_detail
