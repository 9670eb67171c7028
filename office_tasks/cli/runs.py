"""`office run`: what became of an admitted wake. Cancelling and retrying run in process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from office_tasks.cli.output import AsJson, say, show, show_json

commands = typer.Typer(help="Runs: what agents have done, do and are to do.", no_args_is_help=True)

_AS_JSON = ("payload", "result")


@commands.command("list")
def list_(
    task: Annotated[str, typer.Option(help="Only those of this task.")] = "",
    agent: Annotated[str, typer.Option(help="Only those of this agent.")] = "",
    status: Annotated[str, typer.Option(help="queued, claimed, finished, failed or cancelled.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most this many, the newest first.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List runs, the newest first."""
    from db import listing
    from db.states import RUN_LIVE, RUN_TERMINAL
    from office_tasks.cli.context import connection
    from office_tasks.errors import InvalidInput

    if status and status not in (known := (*RUN_LIVE, *RUN_TERMINAL)):
        raise InvalidInput(f"status: must be one of {', '.join(known)}, not {status!r}")
    with connection() as reading:
        rows = listing.runs(
            reading, task_id=task or None, agent_profile_id=agent or None, status=status or None, most=limit
        )
    columns = ("id", "agent_profile_id", "reason", "task_id", "status", "attempt", "requested_at", "finished_at")
    show(rows, columns, as_json=as_json)


@commands.command("show")
def show_(run_id: str, as_json: AsJson = False) -> None:
    """Show one run: its state, its attempts and times, its payload, and what came of it."""
    from db import listing
    from office_tasks import validation
    from office_tasks.cli.context import connection
    from office_tasks.errors import NotFound

    wanted = validation.run_id(run_id)
    with connection() as reading:
        found = listing.run(reading, wanted)
    if found is None:
        raise NotFound(f"there is no run '{wanted}'")
    if as_json:
        show_json(found)
        return
    for name, value in found.items():
        say(f"{name:<22} {_cell(name, value)}".rstrip())


@commands.command()
def cancel(run_id: str, as_json: AsJson = False) -> None:
    """Cancel a queued run, or ask a running execution to stop."""
    from office_tasks.cli.context import engine
    from office_tasks.execution import orders

    done = orders.cancel(engine(), run_id)
    if as_json:
        show_json(done)
    elif done["status"] == "cancelled":
        say(f"run {done['run_id']} is cancelled{'' if done['changed'] else ' already'}")
    elif done["changed"]:
        say(f"run {done['run_id']} is asked to stop; if it does not within 30 s, its lease is withdrawn")
    else:
        say(f"run {done['run_id']} is asked to stop already, since {done['cancel_requested_at']:%H:%M:%S} UTC")


@commands.command()
def retry(run_id: str, as_json: AsJson = False) -> None:
    """Have the work of a run that is over done again: the same agent, the same payload, a new run."""
    from office_tasks.cli.context import engine
    from office_tasks.errors import Refused
    from office_tasks.execution import orders
    from office_tasks.ids import new_id

    try:
        done = orders.retry(engine(), str(new_id()), run_id)
    except Refused as refused:
        if not as_json:
            raise
        show_json({"outcome": "none", "refusal": refused.refusal, "message": str(refused), "retried": run_id})
        raise typer.Exit(1) from None
    if as_json:
        show_json(done)
    else:
        say(f"run {done['retried']} is retried: {_outcome(done)}")


def _outcome(done: Mapping[str, Any]) -> str:
    if done["outcome"] == "queued":
        return f"run {done['run_id']} is queued"
    if done["outcome"] == "coalesced":
        return f"merged into run {done['run_id']}, which waits and has this payload now"
    return str(done["outcome"])


def _cell(name: str, value: object) -> str:
    if value is None and name != "payload":
        return ""
    return json.dumps(value, ensure_ascii=False) if name in _AS_JSON else str(value)
