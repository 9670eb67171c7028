"""`office replay`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from office_tasks.replay.run import Replay

INTERRUPTED = 130


def register(office: typer.Typer) -> None:
    """Add the command."""
    office.command("replay")(replay)


def replay(
    file: Annotated[Path, typer.Argument(help="CSV or JSON lines, gzipped or not.")],
    virtual_time: Annotated[
        bool,
        typer.Option("--virtual-time", help="Apply each event at its own instant, without a broker (the default)."),
    ] = False,
    via_celery: Annotated[
        bool, typer.Option("--via-celery", help="Push the events through the broker as fast as a worker takes them.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Let one bad line stop the replay before anything is written.")
    ] = False,
    allow_shared: Annotated[
        bool, typer.Option("--allow-shared", help="Replay into a database that other workspaces live in.")
    ] = False,
    data: Annotated[
        Path | None, typer.Option("--data", help="Keep the throwaway server's files here, for a later replay.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the totals as one JSON object.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show every decision's log.")] = False,
) -> None:
    """Run a recorded history of assignments through admission, and total what became of it.

    Columns: occurred_at, task_id, event (create or assign), assignee_id, actor_type, actor_id. Without
    OFFICE_DATABASE_URL it uses a throwaway server. A file replayed again applies nothing twice.
    """
    if virtual_time and via_celery:
        raise typer.BadParameter("--virtual-time and --via-celery exclude each other")
    from office_tasks.replay.run import Replay

    asked = Replay(
        file=file,
        via_celery=via_celery,
        strict=strict,
        allow_shared=allow_shared,
        data=data,
        log_level="INFO" if verbose else "ERROR",
    )
    raise typer.Exit(_run(asked, as_json=as_json))


def _run(asked: Replay, *, as_json: bool) -> int:
    from office_tasks.logs import configure_logs
    from office_tasks.replay.errors import ReplayError, ReplayStopped
    from office_tasks.replay.report import Report, print_totals
    from office_tasks.replay.run import replay as play
    from office_tasks.replay.stopping import stop_on_signal
    from office_tasks.replay.tally import Tally

    configure_logs(asked.log_level)
    report, tally = Report(), Tally()
    with stop_on_signal() as stop:
        try:
            play(asked, tally, report, stop)
        except ReplayStopped as why:
            report.say(f"office: {why}; {_how_far(asked, tally.events)}")
            return why.exit_code
        except ReplayError as why:
            report.say(f"office: {why}")
            return why.exit_code
    print_totals(tally.summary(), as_json=as_json)
    if stop.is_set():
        report.say(f"office: interrupted; {_how_far(asked, tally.events)}")
        return INTERRUPTED
    if owed := tally.counts["owed"]:
        report.say(f"office: {owed} wakes are still owed: the database failed while they were decided")
        return 1
    return 0


def _how_far(asked: Replay, events: int) -> str:
    from office_tasks.settings import load

    if asked.data is None and "database_url" not in load().model_fields_set:
        return f"{events} events were accounted for, in a throwaway database that is gone: --data DIR keeps one"
    return f"{events} events were accounted for; run it again to continue, they will be already_applied"
