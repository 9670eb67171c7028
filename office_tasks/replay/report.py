"""What a person sees of a replay: bad lines and progress on standard error, the totals on standard output."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from office_tasks.replay.events import BadLine

SHOWN: Final = 20

_MEANINGS: Final = {
    "events": "lines of the file that were accounted for",
    "created": "tasks created",
    "assigned": "assignments applied",
    "unassigned": "assignees taken away; these owe no wake",
    "queued": "wakes that became a run",
    "coalesced": "wakes merged into a run that was still waiting",
    "deduped": "wakes that were redeliveries",
    "rate_limited": "wakes over the assignment allowance",
    "refused": "wakes of agents or workspaces that may not be woken",
    "owed": "wakes not decided yet",
    "invalid": "lines skipped",
    "already_applied": "events that an earlier replay applied",
}


class Report:
    """Tells what happens while it happens. Nothing of it goes to standard output."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._bad = 0

    def say(self, sentence: str) -> None:
        """Say one sentence."""
        self._console.print(sentence, soft_wrap=True)

    def complain(self, line: BadLine) -> None:
        """Tell of a line that was skipped; of the many after the first ones only how many there are, at the end."""
        self._bad += 1
        if self._bad <= SHOWN:
            self.say(f"line {line.number}: {line.why}")

    def advance(self, events: int) -> None:
        """Move the bar."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, events)

    @contextmanager
    def progress(self, total: int) -> Iterator[None]:
        """Show a bar on a terminal for as long as it lasts; then tell of the bad lines not shown."""
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("events"),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        with Progress(*columns, console=self._console, disable=not self._console.is_terminal) as self._bar:
            self._task = self._bar.add_task("replay", total=total)
            try:
                yield
            finally:
                self._bar.refresh()
        self._bar = None
        if self._bad > SHOWN:
            self.say(f"and {self._bad - SHOWN} more lines like these")


def print_totals(summary: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the totals: one JSON object, or two tables."""
    console = Console(highlight=False, markup=False)
    if as_json:
        console.file.write(json.dumps(summary, ensure_ascii=False) + "\n")
        return
    totals = Table("", "", "what", box=None, pad_edge=False, show_header=False)
    for name, meaning in _MEANINGS.items():
        totals.add_row(name, f"{summary[name]:,}", meaning)
    totals.add_row("seconds", f"{summary['seconds']:,}", _pace(summary))
    totals.columns[1].justify = "right"
    console.print(totals)
    if summary["most_rate_limited"]:
        most = Table("most rate-limited tasks", "wakes", box=None, pad_edge=False)
        for row in summary["most_rate_limited"]:
            most.add_row(row["task_id"], f"{row['rate_limited']:,}")
        console.print()
        console.print(most)


def _pace(summary: Mapping[str, Any]) -> str:
    return f"{summary['events'] / summary['seconds']:,.0f} events a second" if summary["seconds"] else ""
