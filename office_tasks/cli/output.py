"""How a command speaks: sentences and tables for people, one JSON document for programs."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

PIPED_WIDTH: Final = 1_000
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def say(sentence: str = "", *, err: bool = False) -> None:
    """Print one line, on standard error if `err`: what an id in it holds makes no second one, and moves no cursor."""
    typer.echo(_seen(sentence), err=err)


def show(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool) -> None:
    """Print `rows`; the table has `columns`, the JSON array has everything."""
    if as_json:
        show_json([dict(row) for row in rows])
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row[column]) for column in columns))
    # A program that reads the table finds each row on one line.
    Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else PIPED_WIDTH).print(table)


def show_json(value: Any) -> None:  # noqa: ANN401 - any JSON value
    """Print one JSON document; instants as ISO 8601."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, dt.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _seen(str(value))


def _seen(words: str) -> str:
    # An id may hold anything: on a terminal it is to be seen, not obeyed.
    return words if words.isprintable() else "".join(map(_shown, words))


def _shown(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]
