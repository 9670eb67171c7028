"""`python -m bench`: measure, print a table, write JSON."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench import admission, claims, latency, memory, question, sweep, throughput
from bench.result import Result
from bench.scale import SMOKE, Scale
from office_tasks.devstack import Postgres
from office_tasks.devstack.unwinding import signals_unwind
from office_tasks.logs import configure_logs

Measure = Callable[[Postgres, Scale], Iterator[Result]]

MEASURES: dict[str, Measure] = {
    "P1": admission.ratios,
    "P2": admission.ratios,
    "P3": admission.growth,
    "P4": admission.never_analyzed,
    "P5": throughput.rates,
    "P6": latency.starts,
    "P7": sweep.ticks,
    "P8": claims.rates,
    "P9": question.ratio,
    "P10": memory.idle,
}
RESULTS = Path(__file__).parent / "results"
# Nothing but us may analyze or write while we measure, and a checkpoint's full pages hit both sides alike.
QUIET = {"autovacuum": "off", "max_wal_size": "8GB", "checkpoint_timeout": "1h"}

app = typer.Typer(add_completion=False)


@app.command()
def bench(
    only: Annotated[str, typer.Option(help="measures to run, such as P1,P2")] = ",".join(MEASURES),
    json_file: Annotated[Path | None, typer.Option("--json", help="where the JSON goes")] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="tiny, to see that it runs; the figures mean nothing")] = False,
    five_million: Annotated[bool, typer.Option(help="P3 with 5 M rows as well; takes long and much disk")] = False,
) -> None:
    """Measure ratios side by side."""
    scale = SMOKE if smoke else Scale()
    chosen = dict.fromkeys(MEASURES[name] for name in only.split(","))
    log_to_nowhere()
    where = json_file or RESULTS / f"{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%SZ}.json"
    found: list[Result] = []
    with signals_unwind(), Postgres(durable=True, settings=QUIET) as server:
        for measure in chosen:
            for result in measure(server, scale.with_five_million() if five_million else scale):
                if result.measure in only.split(","):
                    found.append(result)
                    write(found, where, smoke=smoke)
    Console().print(table(found))


def log_to_nowhere() -> None:
    """Log at INFO, formatted in full, to /dev/null: what a worker pays without a disk behind its log."""
    configure_logs("INFO", open(os.devnull, "w"))  # noqa: SIM115, PTH123 - open as long as the process


def write(found: list[Result], where: Path, *, smoke: bool) -> None:
    where.parent.mkdir(parents=True, exist_ok=True)
    about = {"at": dt.datetime.now(dt.UTC).isoformat(), "smoke": smoke, "command": sys.argv[1:]}
    machine = {"cpus": os.cpu_count(), "system": platform.system(), "python": platform.python_version()}
    results = [{**asdict(result), "met": result.met} for result in found]
    # Written after each result: an interrupted run keeps what it has seen.
    where.write_text(json.dumps({**about, "machine": machine, "results": results}, indent=2) + "\n")


def table(found: list[Result]) -> Table:
    made = Table(title="Ratios, side by side in one run; medians")
    for heading in ("measure", "condition", "seen", "target", "", "in detail"):
        made.add_column(heading)
    for result in found:
        made.add_row(
            result.measure,
            result.condition,
            f"{result.value:.2f}",
            "" if result.target is None else f"{'≤' if result.at_most else '≥'} {result.target}",
            {None: "", True: "[green]met[/]", False: "[red]missed[/]"}[result.met],
            "\n".join(f"{name}: {value}" for name, value in result.detail.items()),
        )
    return made


if __name__ == "__main__":
    app()
