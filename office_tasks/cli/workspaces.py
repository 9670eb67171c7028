"""`office workspace`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from office_tasks.cli.output import AsJson, say, show, show_json

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
    say(f"created workspace {workspace_id}")


@commands.command("list")
def list_(as_json: AsJson = False) -> None:
    """List all workspaces."""
    from db import listing
    from office_tasks.cli.context import connection

    with connection() as reading:
        rows = listing.workspaces(reading)
    show(rows, ("id", "name", "office_workflow_id", "paused", "agents", "tasks"), as_json=as_json)


@commands.command()
def pause(
    workspace_id: str,
    reason: Annotated[str, typer.Option(help="Why, for whoever finds it paused.")] = "",
    interrupt: Annotated[bool, typer.Option("--interrupt", help="Ask what its agents execute to stop.")] = False,
    as_json: AsJson = False,
) -> None:
    """Pull its kill switch: no wake of its agents is admitted, and no run claimed, until it is resumed."""
    from office_tasks.cli.context import engine
    from office_tasks.ids import new_id
    from office_tasks.producers.pauses import pause_workspace

    done = pause_workspace(engine(), str(new_id()), workspace_id, reason, interrupt=interrupt)
    work = _work(workspace_id)
    if as_json:
        show_json({**done, **work})
        return
    say(f"workspace {workspace_id} is paused{'' if done['changed'] else ' already'}{_because(work)}")
    say(f"runs that wait until it is resumed: {work['queued']}")
    say(_executions(done, work, interrupt=interrupt))


@commands.command()
def resume(workspace_id: str, as_json: AsJson = False) -> None:
    """Let it work again; the wakes that it owes pass the gates now, oldest first."""
    from office_tasks.cli.context import engine
    from office_tasks.ids import new_id
    from office_tasks.producers.pauses import resume_workspace

    done = resume_workspace(engine(), str(new_id()), workspace_id)
    work = _work(workspace_id)
    if as_json:
        show_json({**done, **work})
        return
    say(f"workspace {workspace_id} is {'resumed' if done['changed'] else 'not paused'}")
    decided = ", ".join(f"{count} {outcome}" for outcome, count in sorted(done["replayed"].items()))
    say(f"wakes that it owed: {decided or 'none'}; made moot by later assignments: {done['superseded']}")
    if work["owed"]:
        say(f"wakes still owed, which the relay decides: {work['owed']}")
    say(f"runs that wait, for their turn or their retry: {work['queued']}")


def _work(workspace_id: str) -> Mapping[str, Any]:
    from db import listing
    from office_tasks.cli.context import connection

    with connection() as reading:
        return listing.work_of_workspace(reading, workspace_id)


def _because(work: Mapping[str, Any]) -> str:
    since = f", since {work['paused_at']:%Y-%m-%d %H:%M:%S} UTC" if work["paused_at"] else ""
    return f"{since}: {work['reason']}" if work["reason"] else since


def _executions(done: Mapping[str, Any], work: Mapping[str, Any], *, interrupt: bool) -> str:
    if not interrupt:
        return f"executions that go on (--interrupt asks them to stop): {work['executing']}"
    if done["interrupted"] is None:
        return "the executions could not be asked to stop yet: the relay asks them"
    return f"executions asked to stop: {', '.join(done['interrupted']) or 'none'}"
