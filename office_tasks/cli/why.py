"""`office why`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from office_tasks.cli.output import AsJson, say, show_json

if TYPE_CHECKING:
    from office_tasks.why import Explanation
    from office_tasks.why.explain import Told


def register(office: typer.Typer) -> None:
    """Add the command."""
    office.command()(why)


def why(
    named: Annotated[str, typer.Argument(metavar="TASK|RUN|WAKE", help="The id of a task, a run or a wake.")],
    as_json: AsJson = False,
) -> None:
    """Say why an agent was started or was not: who asked, which gate decided what, and what is in the way now."""
    from office_tasks.cli.context import connection
    from office_tasks.why import explain

    with connection() as reading:
        found = explain(reading, named, _ask_workers)
    if as_json:
        show_json(found.document())
        return
    _head(found)
    _part("wakes, the newest first", found.wakes)
    _part("runs, the newest first", found.runs)


def _ask_workers(queues: Sequence[str]) -> list[str]:
    from office_tasks.broker import PATIENCE_SECONDS, look
    from office_tasks.cli.context import application

    seen = look(application())
    if seen.error:
        return [f"The broker {seen.url} does not answer ({seen.error}), so no worker is told of anything."]
    idle = [queue for queue in queues if not seen.takers(queue)]
    return [f"No worker that takes the queue {queue} answered within {PATIENCE_SECONDS:g} s." for queue in idle]


def _head(found: Explanation) -> None:
    say(_task(found.task) if found.task else f"{found.kind} {found.id}")
    for sentence in found.now:
        say(f"  {sentence}")


def _task(task: Mapping[str, Any]) -> str:
    where = f"at step {task['step_id']}" if task["step_id"] else "on no step"
    driven = f"driven by {task['runner_id']}" if task["runner_id"] else "driven by nobody"
    return f"task {task['id']} of workspace {task['workspace_id']}: {task['status']}, {where}, {driven}"


def _part(title: str, told: Sequence[Told]) -> None:
    say()
    say(f"{title}:" if told else f"{title.partition(',')[0]}: none")
    for one in told:
        say(f"  {one.row['requested_at']:%Y-%m-%d %H:%M:%S}  {one.title}  [{one.row['id']}]")
        for sentence in one.sentences:
            say(f"    {sentence}")
