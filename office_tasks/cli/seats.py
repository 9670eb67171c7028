"""`office seat`: who sits on a task. Each runs in process, the same code as the Celery tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from office_tasks.cli.output import AsJson, say, show, show_json

commands = typer.Typer(help="Seats: who reviews, approves and watches a task.", no_args_is_help=True)

Role = Annotated[str, typer.Argument(help="reviewer, approver, collaborator or watcher.")]
Caller = Annotated[str, typer.Option(help="The agent that asks, who must hold `approve`; without one it is you.")]


@commands.command()
def add(task_id: str, agent_profile_id: str, role: Role, caller: Caller = "", as_json: AsJson = False) -> None:
    """Give an agent a seat on a task, at the step where it stands."""
    from office_tasks.cli.context import engine
    from office_tasks.ids import new_id
    from office_tasks.producers.participants import add_participant

    done = add_participant(engine(), str(new_id()), task_id, agent_profile_id, role, caller)
    if as_json:
        show_json(done)
        return
    already = "" if done["added"] else " already"
    say(f"{agent_profile_id} is {role} of task {task_id} at step {done['step_id']}{already}")


@commands.command()
def remove(
    task_id: str,
    agent_profile_id: str,
    role: Annotated[str, typer.Argument(help="Any role; without its runner's seat a task is unassigned.")],
    caller: Caller = "",
    as_json: AsJson = False,
) -> None:
    """Take a seat away; the agent's session ends unless it holds another capacity on the task."""
    from office_tasks.cli.context import engine
    from office_tasks.ids import new_id
    from office_tasks.producers.participants import remove_participant

    done = remove_participant(engine(), str(new_id()), task_id, agent_profile_id, role, caller)
    if as_json:
        show_json(done)
        return
    say(f"{agent_profile_id} is no longer {role} of task {task_id}")
    if "interrupted" in done:
        say(_executions(done["interrupted"]))
    say(_session(done, agent_profile_id))


@commands.command()
def claim(
    task_id: str,
    role: Role,
    displaced_agent_id: Annotated[str, typer.Argument(help="Who sits there now.")],
    claiming_agent_id: Annotated[str, typer.Argument(help="Who takes the seat; it is not woken.")],
    caller: Caller = "",
    as_json: AsJson = False,
) -> None:
    """Let an agent take another's seat; the displaced one's session ends unless it holds another capacity."""
    from office_tasks.cli.context import engine
    from office_tasks.ids import new_id
    from office_tasks.producers.participants import claim_seat

    done = claim_seat(engine(), str(new_id()), task_id, role, displaced_agent_id, claiming_agent_id, caller)
    if as_json:
        show_json(done)
        return
    say(f"{claiming_agent_id} is {role} of task {task_id} in place of {displaced_agent_id}")
    for run_id, status in done["withdrawn"].items():
        left = "is cancelled" if status == "cancelled" else "is for its other roles only"
        say(f"review run {run_id} of {displaced_agent_id} {left}")
    say(_session(done, displaced_agent_id))


@commands.command("list")
def list_(task_id: str, as_json: AsJson = False) -> None:
    """List who sits on a task at its current step: its own seats, and its step's template seats."""
    from db import listing
    from db.slate import slate
    from office_tasks.cli.context import connection
    from office_tasks.errors import NotFound
    from office_tasks.prose import shown

    with connection() as reading:
        found = listing.task(reading, task_id)
        seats = slate(reading, task_id)
    if found is None:
        raise NotFound(f"there is no task {shown(task_id)}")
    if not as_json and found["step_id"] is None:
        say(f"task {task_id} stands on no step, so nobody sits on it; its runner: {found['runner_id'] or 'none'}")
        return
    show([seat._asdict() for seat in seats], ("agent_profile_id", "role", "is_template"), as_json=as_json)


@commands.command()
def template(
    step_id: str,
    agent_profile_id: str,
    role: Role,
    remove: Annotated[bool, typer.Option("--remove", help="Take it away; no session ends by that.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give an agent a seat on every task that stands at a step, or take it away."""
    from office_tasks import admin
    from office_tasks.cli.context import engine

    change = admin.remove_template_seat if remove else admin.add_template_seat
    changed = change(engine(), step_id, role, agent_profile_id)
    if as_json:
        seat = {"step_id": step_id, "agent_profile_id": agent_profile_id, "role": role}
        show_json({**seat, "removed" if remove else "added": changed})
    elif remove:
        what = "is no longer" if changed else "was not"
        say(f"{agent_profile_id} {what} {role} of every task at step {step_id}")
    else:
        say(f"{agent_profile_id} is {role} of every task at step {step_id}{'' if changed else ' already'}")


def _executions(interrupted: list[str] | None) -> str:
    if interrupted is None:
        return "its executions could not be asked to stop yet: the relay asks them"
    return f"executions asked to stop: {', '.join(interrupted) or 'none'}"


def _session(done: Mapping[str, Any], agent: str) -> str:
    """Return in a sentence what became of the agent's session (SES-1)."""
    came, task = done["session"], done["task_id"]
    if came["terminated"]:
        return f"its session {came['session_id']} has ended; it was {came['from_state']}"
    if "error" in came:
        return f"its session could not be ended, and stays: {came['error']}"
    kept = {
        "runner": f"any session of its is kept: {agent} is still the runner of task {task}",
        "seat": f"any session of its is kept: {agent} still sits on task {task}",
        "read_failed": f"any session of its is kept: what {agent} still holds on task {task} could not be read",
    }
    return kept.get(came.get("retained"), f"{agent} had no live session on task {task}")
