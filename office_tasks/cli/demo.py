"""`office demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(office: typer.Typer) -> None:
    """Add the command."""
    office.command()(demo)


def demo(
    data_dir: Annotated[Path, typer.Option(help="Where the demo's servers keep their files.")] = Path(".data/demo"),
) -> None:
    """Drive a small office through every outcome and refusal, with a real worker, and say why each came about."""
    from office_tasks.demo import run

    raise typer.Exit(run(data_dir))
