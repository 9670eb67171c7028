"""`office session`: who holds what on a task, and what became of its sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

from office_tasks.cli.output import AsJson, say, show, show_json

if TYPE_CHECKING:
    from db.standing import Latest, Standing

commands = typer.Typer(help="Sessions: the conversation of each agent on a task.", no_args_is_help=True)

_TIERS: Final = {
    "seat": "its seat where the task stands",
    "primary_agent": "the step's primary agent",
    "earlier_seat": "its newest seat, at another step",
}


@commands.callback()
def _group() -> None:
    pass


@commands.command("show")
def show_(task_id: str, as_json: AsJson = False) -> None:
    """Show who holds what on a task now, which sessions live, and why each of the latest ended or was kept."""
    from db.standing import standing
    from office_tasks.cli.context import connection
    from office_tasks.errors import NotFound
    from office_tasks.prose import shown

    with connection() as reading:
        found = standing(reading, task_id)
    if found is None:
        raise NotFound(f"there is no task {shown(task_id)}")
    if as_json:
        show_json(_document(found))
        return
    task = found.task
    say(f"task {task['id']} of workspace {task['workspace_id']}, {task['status']}, {_where(task)}")
    runner = f"{task['runner_id']} ({_TIERS[task['runner_by']]})" if task["runner_id"] else "none"
    say(f"runner: {runner}")
    _part("seats", found.seats, ("agent_profile_id", "role", "is_template"), more="office seat list shows all")
    _part("live sessions", found.live, ("agent_profile_id", "state", "created_at", "updated_at", "id"))
    _part("ended sessions", found.ended, ("ended_at", "agent_profile_id", "reason", "created_at", "id"))
    _part("kept sessions", found.kept, ("committed_at", "agent_profile_id", "reason", "retained", "error"))


def _where(task: Mapping[str, Any]) -> str:
    return f"at step {task['step_id']}" if task["step_id"] else "on no step"


def _part(title: str, latest: Latest, columns: Sequence[str], *, more: str = "there are more") -> None:
    say()
    if not latest.rows:
        say(f"{title}: none")
        return
    say(f"{title}, {len(latest.rows)} of them; {more}:" if latest.more else f"{title}:")
    show(latest.rows, columns, as_json=False)


def _document(found: Standing) -> dict[str, Any]:
    parts = {name: getattr(found, name) for name in ("seats", "live", "ended", "kept")}
    rows = {name: latest.rows for name, latest in parts.items()}
    return {**found.task, **rows, "more": [name for name, latest in parts.items() if latest.more]}
