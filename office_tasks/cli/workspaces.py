"""`office workspace`."""

from __future__ import annotations

from typing import Annotated

import typer

from office_tasks.cli.output import AsJson, show

commands = typer.Typer(
    help="Workspaces: one office each, with its agents, tasks and pause switch.", no_args_is_help=True
)


@commands.command()
def create(
    workspace_id: str,
    name: Annotated[str, typer.Option(help="What people call it.")] = "",
    workflow: Annotated[str, typer.Option(help="The id of its office workflow, whose steps may start work.")] = "",
    recovery_lookback_hours: Annotated[int, typer.Option(help="How far back the sweep looks; 1 to 720.")] = 24,
) -> None:
    """Create a workspace."""
    from office_tasks import admin
    from office_tasks.cli.context import engine

    admin.create_workspace(
        engine(), workspace_id, name, workflow_id=workflow, recovery_lookback_hours=recovery_lookback_hours
    )
    typer.echo(f"created workspace {workspace_id}")


@commands.command("list")
def list_(as_json: AsJson = False) -> None:
    """List all workspaces."""
    from db import listing
    from office_tasks.cli.context import connection

    with connection() as reading:
        rows = listing.workspaces(reading)
    show(rows, ("id", "name", "office_workflow_id", "paused", "agents", "tasks"), as_json=as_json)
