"""`office migrate`."""

from __future__ import annotations

import typer

from office_tasks.cli.output import say


def register(office: typer.Typer) -> None:
    """Add the command."""
    office.command()(migrate)


def migrate() -> None:
    """Bring the schema of OFFICE_DATABASE_URL to this version; safe to run again, and by several at once."""
    from db import migrate as migrations
    from office_tasks.cli.context import engine

    behind = migrations.pending(engine())
    migrations.upgrade(engine())
    say("the schema is up to date" if not behind else "the schema was brought up to date")
