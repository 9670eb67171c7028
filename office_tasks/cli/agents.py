"""`office agent`."""

from __future__ import annotations

from typing import Annotated

import typer

from office_tasks.cli.output import AsJson, show

commands = typer.Typer(help="Agents: who can be woken.", no_args_is_help=True)


@commands.command()
def create(
    workspace_id: str,
    agent_profile_id: str,
    name: Annotated[str, typer.Option(help="What people call it.")] = "",
    role: Annotated[str, typer.Option(help="Decides what it may do, unless --permission does.")] = "worker",
    status: Annotated[str, typer.Option(help="active, paused, stopped or pending_approval.")] = "active",
    permission: Annotated[list[str] | None, typer.Option(help="Instead of its role's; may be repeated.")] = None,
    max_concurrent_sessions: Annotated[
        int | None, typer.Option(min=1, help="How many runs it works on at once.")
    ] = None,
) -> None:
    """Create an agent in a workspace."""
    from office_tasks import admin
    from office_tasks.cli.context import engine

    admin.create_agent(
        engine(),
        workspace_id,
        agent_profile_id,
        name,
        role=role,
        status=status,
        permissions=permission or None,
        max_concurrent_sessions=max_concurrent_sessions,
    )
    typer.echo(f"created agent {agent_profile_id}")


@commands.command("list")
def list_(
    workspace: Annotated[str, typer.Option(help="Only those of this workspace.")] = "", as_json: AsJson = False
) -> None:
    """List agents."""
    from db import listing
    from office_tasks.cli.context import connection

    with connection() as reading:
        rows = listing.agents(reading, workspace or None)
    show(rows, ("id", "workspace_id", "name", "role", "status"), as_json=as_json)


@commands.command("status")
def set_status(agent_profile_id: str, status: str) -> None:
    """Set whether an agent may be woken: active, paused, stopped or pending_approval."""
    from office_tasks import admin
    from office_tasks.cli.context import engine

    admin.set_agent_status(engine(), agent_profile_id, status)
    typer.echo(f"agent {agent_profile_id} is {status}")
