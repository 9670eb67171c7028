"""`office doctor`."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from office_tasks.cli.output import AsJson, say, show_json

if TYPE_CHECKING:
    from office_tasks.doctor import Finding


def register(office: typer.Typer) -> None:
    """Add the command."""
    office.command()(doctor)


def doctor(
    as_json: AsJson = False,
    beat: Annotated[bool, typer.Option("--beat", help="Look only whether beat is at work: a health check.")] = False,
) -> None:
    """Say what is wrong with this installation, and what to do; exit with 1 when something does not work."""
    from office_tasks.cli.context import application, office, quiet
    from office_tasks.doctor import Level, examine, pulse

    quiet()
    found = list(pulse(office(), application()) if beat else examine(office, application, os.environ))
    if as_json:
        show_json([asdict(finding) for finding in found])
    else:
        _tell(found)
    raise typer.Exit(1 if any(finding.level is Level.ERROR for finding in found) else 0)


def _tell(found: list[Finding]) -> None:
    for finding in found:
        say(f"{finding.level.value:<5}  {finding.check}: {finding.found}")
        if finding.advice:
            say(f"       {finding.advice}")
    counted = Counter(finding.level.value for finding in found)
    say()
    say(f"{_many(counted['error'], 'error')}, {_many(counted['warn'], 'warning')}, {counted['ok']} ok")


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
