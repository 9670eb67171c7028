"""`office agent`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from office_tasks.cli.output import AsJson, say, show, show_json

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
    say(f"created agent {agent_profile_id}")


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


@commands.command()
def pause(agent_profile_id: str, as_json: AsJson = False) -> None:
    """Wake it no more until it is resumed; its queued runs wait, and what it executes goes on."""
    _set_aside(agent_profile_id, "paused", as_json=as_json)


@commands.command()
def stop(agent_profile_id: str, as_json: AsJson = False) -> None:
    """Wake it no more, as pausing does; it is meant to stay so."""
    _set_aside(agent_profile_id, "stopped", as_json=as_json)


@commands.command()
def resume(agent_profile_id: str, as_json: AsJson = False) -> None:
    """Let it be woken again, whatever kept it from that: paused, stopped or pending approval."""
    work = _set(agent_profile_id, "active")
    if as_json:
        show_json(work)
        return
    say(f"agent {agent_profile_id} is {_changed(work)}")
    if work["workspace_paused"]:
        say(f"its workspace {work['workspace_id']} is paused: nothing of it starts until that is resumed")
    say(f"runs that wait, for their turn or their retry: {work['queued']}")
    say(f"wakes that are owed, which the relay decides: {work['owed']}")
    say("tasks that it was refused meanwhile and never started, the sweep brings back")


@commands.command()
def delete(
    agent_profile_id: str,
    yes: Annotated[bool, typer.Option("--yes", help="Really: it cannot be taken back.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete it: its sessions end on every task, whatever it holds there, and its work stops. Its seats stay."""
    from office_tasks.cli.context import engine
    from office_tasks.errors import InvalidInput
    from office_tasks.ids import new_id
    from office_tasks.producers.deletion import delete_agent

    if not yes:
        raise InvalidInput(f"deleting agent {agent_profile_id!r} cannot be taken back: say --yes to do it")
    done = delete_agent(engine(), str(new_id()), agent_profile_id)
    if as_json:
        show_json(done)
        return
    say(f"agent {agent_profile_id} is deleted; its seats stay")
    say(f"sessions ended: {len(done['sessions'])}")
    say(f"queued runs cancelled: {len(done['cancelled'])}")
    say(f"executions asked to stop: {len(done['interrupted'])}")


def _set_aside(agent_profile_id: str, status: str, *, as_json: bool) -> None:
    work = _set(agent_profile_id, status)
    if as_json:
        show_json(work)
        return
    say(f"agent {agent_profile_id} is {_changed(work)}: new wakes are refused")
    say(f"runs that wait, and are not claimed until it is resumed: {work['queued']}")
    say(f"executions that go on: {work['executing']}")


def _set(agent_profile_id: str, status: str) -> dict[str, Any]:
    from db import listing
    from office_tasks import admin
    from office_tasks.cli.context import connection, engine

    was = admin.set_agent_status(engine(), agent_profile_id, status)
    with connection() as reading:
        work = listing.work_of_agent(reading, agent_profile_id)
    return {"agent_profile_id": agent_profile_id, "status": status, "was": was, "changed": was != status, **work}


def _changed(work: Mapping[str, Any]) -> str:
    return f"{work['status']} (it was {work['was']})" if work["changed"] else f"{work['status']} already"
