"""Migrations, run from code: no configuration file to find, none to disagree with the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

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


def standing(connection: Connection) -> Literal["current", "behind", "ahead"]:
    """Tell how the schema stands to this code; `ahead` when it is at a revision that this code does not know."""
    script = ScriptDirectory.from_config(config())
    there = set(MigrationContext.configure(connection).get_current_heads())
    if there == set(script.get_heads()):
        return "current"
    known = {one.revision for one in script.walk_revisions()}
    return "behind" if there <= known else "ahead"


def pending(engine: Engine) -> bool:
    """Tell whether the schema is behind this code."""
    with engine.connect() as connection:
        heads = MigrationContext.configure(connection).get_current_heads()
    return set(heads) != set(ScriptDirectory.from_config(config()).get_heads())
