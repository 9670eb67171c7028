"""`office servers`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from office_tasks.cli.output import say


def register(office: typer.Typer) -> None:
    """Add the command."""
    office.command()(servers)


def servers(
    data_dir: Annotated[Path, typer.Option(help="Where they keep their files; they stay.")] = Path(".data/servers"),
) -> None:
    """Run a PostgreSQL and a Redis of your own, to try things out, until Ctrl-C; print the variables that name them."""
    import signal

    from office_tasks.devstack import DevStack
    from office_tasks.devstack.unwinding import signals_unwind

    try:
        with signals_unwind(), DevStack(data_dir) as stack:
            say(f"export OFFICE_DATABASE_URL={stack.postgres.url} OFFICE_BROKER_URL={stack.redis.url}")
            say("# run the line above where you try things out; Ctrl-C here stops both", err=True)
            while True:
                signal.pause()
    except KeyboardInterrupt:
        say("# both are stopped", err=True)
