"""`office task`: the rows on the board. Creating and assigning run in process, the same code as the Celery tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from office_tasks.cli.output import AsJson, say, show, show_json

commands = typer.Typer(help="Tasks on the board.", no_args_is_help=True)

Caller = Annotated[str, typer.Option(help="The agent that asks; without one it is you, whom no allowance limits.")]


@commands.command()
def create(
    workspace_id: str,
    title: str,
    task: Annotated[str, typer.Option(help="Its id; a new one when absent.")] = "",
    step: Annotated[str, typer.Option(help="The step it stands on.")] = "",
    workflow: Annotated[str, typer.Option(help="The workflow it is on, when it stands on no step.")] = "",
    project: Annotated[str, typer.Option(help="The project it belongs to.")] = "",
    parent: Annotated[str, typer.Option(help="The task it is a part of.")] = "",
    priority: Annotated[str, typer.Option(help="Any text.")] = "",
    assignee: Annotated[str, typer.Option(help="Who is to drive it, and is woken.")] = "",
    caller: Caller = "",
    as_json: AsJson = False,
) -> None:
    """Create a task; with an assignee, wake them."""
    from office_tasks.cli.context import engine
    from office_tasks.ids import new_id
    from office_tasks.producers.creation import create_task

    made = create_task(
        engine(),
        str(new_id()),
        workspace_id,
        title,
        task_id=task,
        step_id=step,
        workflow_id=workflow,
        project_id=project,
        parent_id=parent,
        priority=priority,
        assignee_id=assignee,
        caller_agent_id=caller,
    )
    _tell(made, f"created task {made['task_id']}", as_json=as_json)


@commands.command()
def assign(
    task_id: str,
    assignee_id: Annotated[str, typer.Argument(help='Who drives it from now on; "" for nobody.')],
    caller: Caller = "",
    as_json: AsJson = False,
) -> None:
    """Change who drives a task, and wake them."""
    from office_tasks.cli.context import engine
    from office_tasks.ids import new_id
    from office_tasks.producers.assignments import assign_task

    done = assign_task(engine(), str(new_id()), task_id, assignee_id, caller)
    _tell(done, f"task {task_id} is {f'assigned to {assignee_id}' if assignee_id else 'unassigned'}", as_json=as_json)


@commands.command("list")
def list_(
    workspace: Annotated[str, typer.Option(help="Only those of this workspace.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most this many, the newest first.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List tasks, the newest first."""
    from db import listing
    from office_tasks.cli.context import connection

    with connection() as reading:
        rows = listing.tasks(reading, workspace or None, limit)
    show(rows, ("id", "workspace_id", "title", "status", "step_id", "runner_id"), as_json=as_json)


@commands.command("show")
def show_(task_id: str, as_json: AsJson = False) -> None:
    """Show one task, who drives it, and its last wakes with what was decided on each."""
    from db import listing
    from office_tasks.cli.context import connection
    from office_tasks.errors import NotFound
    from office_tasks.prose import shown

    with connection() as reading:
        found = listing.task(reading, task_id)
        wakes = listing.wakes_of_task(reading, task_id)
    if found is None:
        raise NotFound(f"there is no task {shown(task_id)}")
    if as_json:
        show_json({**found, "wakes": [dict(wake) for wake in wakes]})
        return
    for name, value in found.items():
        say(f"{name:<22} {'' if value is None else value}")
    say()
    show(wakes, ("requested_at", "agent_profile_id", "reason", "state", "outcome", "gate", "refusal"), as_json=False)


def _tell(result: Mapping[str, Any], done: str, *, as_json: bool) -> None:
    if as_json:
        show_json(result)
        return
    say(done)
    for wake in result["wakes"]:
        answer = f"{wake['outcome']} ({wake['refusal']}, {wake['state']})" if wake["refusal"] else wake["outcome"]
        say(f"wake of {wake['agent_profile_id']}: {answer}")
