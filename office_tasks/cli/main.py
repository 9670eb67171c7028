"""`office`: its commands, and how a failure is told."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Annotated

import typer

from office_tasks.cli import (
    agents,
    database,
    demo,
    doctor,
    processes,
    replay,
    runs,
    seats,
    servers,
    sessions,
    status,
    steps,
    tasks,
    why,
    workspaces,
)
from office_tasks.cli.output import say

office = typer.Typer(
    help="Office Tasks: who may be woken, decided once, in Postgres.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for part in (database, processes, servers, demo, replay, status, why, doctor):
    part.register(office)
for group, name in (
    (workspaces, "workspace"), (agents, "agent"), (steps, "step"), (tasks, "task"), (seats, "seat"),
    (runs, "run"), (sessions, "session"),
):  # fmt: skip
    office.add_typer(group.commands, name=name)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"office-tasks {_installed()}")
        raise typer.Exit


def _installed() -> str:
    try:
        return metadata.version("office-tasks")
    except metadata.PackageNotFoundError:
        return "(run from its sources, not installed)"


@office.callback()
def _office(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 when it did its work, 1 with a sentence when it could not, 2 for wrong usage."""
    try:
        office(args=arguments)
    except Exception as error:
        from office_tasks.cli.failures import sentence

        told = sentence(error)
        if told is None:
            raise
        say(f"office: {told}", err=True)
        sys.exit(1)
