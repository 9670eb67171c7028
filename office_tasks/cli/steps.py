"""`office step`."""

from __future__ import annotations

from typing import Annotated

import typer

from office_tasks.cli.output import AsJson, say, show

commands = typer.Typer(help="Steps: where tasks stand in a workflow.", no_args_is_help=True)


@commands.command()
def create(
    workspace_id: str,
    step_id: str,
    workflow: Annotated[str, typer.Option(help="The id of the workflow it is a step of.")],
    name: Annotated[str, typer.Option(help="What people call it.")] = "",
    auto_start: Annotated[bool, typer.Option("--auto-start", help="Wake whoever drives a task on it.")] = False,
    primary_agent: Annotated[str, typer.Option(help="Who drives a task on it that nobody was assigned to.")] = "",
) -> None:
    """Create a step of a workflow."""
    from office_tasks import admin
    from office_tasks.cli.context import engine

    admin.create_step(
        engine(),
        workspace_id,
        step_id,
        name,
        workflow_id=workflow,
        auto_start=auto_start,
        primary_agent_id=primary_agent,
    )
    say(f"created step {step_id}")


@commands.command("list")
def list_(
    workspace: Annotated[str, typer.Option(help="Only those of this workspace.")] = "", as_json: AsJson = False
) -> None:
    """List steps."""
    from db import listing
    from office_tasks.cli.context import connection

    with connection() as reading:
        rows = listing.steps(reading, workspace or None)
    show(rows, ("id", "workspace_id", "workflow_id", "name", "auto_start", "primary_agent_id"), as_json=as_json)
