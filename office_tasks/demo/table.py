"""The two tables that a person reads at the end."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from rich import box
from rich.table import Table
from rich.text import Text

from office_tasks.admission import GATES
from office_tasks.demo.executed import CONTRACT, Became
from office_tasks.demo.play import Played

_NUMBER: Final = {gate.decide.__name__: number for number, gate in enumerate(GATES, 1)}
HAPPENED_WIDTH: Final = 16
NARROW: Final = 100
_STYLE: Final = {
    "queued": "green",
    "coalesced": "cyan",
    "deduped": "cyan",
    "rate_limited": "yellow",
    "owed": "yellow",
    "paused": "dim",
    "resumed": "dim",
    "no wake": "dim",
    "finished": "green",
    "cancelled": "yellow",
}


def asked(played: Sequence[Played], width: int) -> Table:
    """Return a row for each case; a run of equal ones is one row. In a narrow `width` a blank line parts the rows."""
    shown = _table(width)
    shown.add_column("asked", ratio=10)
    shown.add_column("happened", width=HAPPENED_WIDTH)
    shown.add_column("gate", width=12)
    shown.add_column("why", ratio=12)
    for (asked, happened, gate, why, ago), equal in groupby(played, key=_row):
        times = len(list(equal))
        shown.add_row(
            _asked(asked, times, ago), Text(_words(happened), style=_STYLE.get(happened, "red")), _gate(gate), Text(why)
        )
    return shown


def executed(runs: Sequence[Became], width: int) -> Table:
    """Return a row for each run, in the contract's order; those that differ in their agent only are one row."""
    why = dict(CONTRACT)
    place = {became: number for number, (became, _) in enumerate(CONTRACT)}
    ordered = sorted(runs, key=lambda became: place.get(became, len(place)))
    shown = _table(width)
    shown.add_column("run", ratio=10)
    shown.add_column("became", width=HAPPENED_WIDTH)
    shown.add_column("attempt", width=12)
    shown.add_column("why", ratio=12)
    for like, equal in groupby(ordered, key=lambda became: became._replace(agent_profile_id="")):
        same = list(equal)
        status = Text(like.status, style=_STYLE.get(like.status, "red"))
        shown.add_row(_run(same), status, str(like.attempt), why.get(same[0], ""))
    return shown


def _run(same: Sequence[Became]) -> str:
    agents = ", ".join(dict.fromkeys(became.agent_profile_id for became in same))
    task = f" of {same[0].task_id}" if same[0].task_id else ""
    return f"{agents}: {same[0].reason}{task}" + (f" ({len(same)} runs)" if len(same) > 1 else "")


def _table(width: int) -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True, leading=1 if width < NARROW else 0)


def _row(one: Played) -> tuple[str, str, str | None, str, dt.timedelta | None]:
    return one.case.asked, one.happened, one.gate, one.why, one.case.ago


def _asked(asked: str, times: int, ago: dt.timedelta | None) -> Text:
    before = Text(f"{_duration(ago)} ago: ", style="dim") if ago else Text()
    return before + Text(asked) + Text(f" ({times} times)" if times > 1 else "")


def _duration(ago: dt.timedelta) -> str:
    hours, seconds = divmod(int(ago.total_seconds()), 3_600)
    return f"{hours} h" if hours else f"{seconds // 60} min"


def _words(happened: str) -> str:
    """Break an error's name that is wider than the column before its last word."""
    if len(happened) <= HAPPENED_WIDTH or " " in happened:
        return happened
    last = max(place for place, letter in enumerate(happened) if letter.isupper())
    return f"{happened[:last]}\n{happened[last:]}"


def _gate(name: str | None) -> Text:
    return Text(f"{_NUMBER[name]} {name.replace('_', ' ')}") if name else Text("-", style="dim")
