"""Migrations, run from code: no configuration file to find, none to disagree with the settings."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine

HERE = Path(__file__).parent / "migrations"


def config(connection: Connection | None = None) -> Config:
    """Return Alembic's configuration, bound to `connection` when there is one."""
    made = Config()
    made.set_main_option("script_location", str(HERE))
    made.attributes["connection"] = connection
    return made


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring the schema to `revision`; a second caller waits for the first, then finds nothing to do."""
    with engine.connect() as connection:
        command.upgrade(config(connection), revision)


def downgrade(engine: Engine, revision: str = "base") -> None:
    """Take the schema back to `revision`."""
    with engine.connect() as connection:
        command.downgrade(config(connection), revision)


def pending(engine: Engine) -> bool:
    """Tell whether the schema is behind this code."""
    with engine.connect() as connection:
        heads = MigrationContext.configure(connection).get_current_heads()
    return set(heads) != set(ScriptDirectory.from_config(config()).get_heads())
