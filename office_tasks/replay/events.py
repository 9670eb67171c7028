"""One line, one event: what it says, or why it says nothing usable."""

from __future__ import annotations

import csv
import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from db.spilled import SpilledSet
from office_tasks import keys, validation
from office_tasks.errors import InvalidInput
from office_tasks.replay.errors import ReplayError
from office_tasks.replay.lines import MAX_LINE_BYTES, Line, lines

COLUMNS: Final = ("occurred_at", "task_id", "event", "assignee_id", "actor_type", "actor_id")
CREATE: Final = "create"
ASSIGN: Final = "assign"
_LAST_GENERATION: Final = 2**63 - 1

Kind = Literal["create", "assign"]


class Event(NamedTuple):
    """A task that was created, or assigned to somebody, or to nobody."""

    number: int
    occurred_at: dt.datetime
    task_id: str
    kind: Kind
    assignee_id: str
    caller_agent_id: str


class BadLine(NamedTuple):
    """A line that is no event."""

    number: int
    why: str


Parse = Callable[[str], Mapping[str, Any]]


def events(path: Path) -> Iterator[Event | BadLine]:
    """Yield what each line says, in order: CSV with a header, or JSON lines when the first line begins with `{`.

    A task is created once, before it is assigned: a line that breaks this is bad too, whatever a database holds.

    Raises:
        ReplayError: the file cannot be read, or its header lacks a column.
    """
    numbered = lines(path)
    first = next(numbered, None)
    if first is None:
        return
    header = first.content or b""
    parse: Parse = _csv_parser(path, header) if has_header(header) else json.loads
    with SpilledSet() as created:
        if not has_header(header):
            yield _in_order(_read(first, parse), created)
        for line in numbered:
            yield _in_order(_read(line, parse), created)


def has_header(first: bytes) -> bool:
    """Tell whether a file that begins with this line is CSV; else it is JSON lines."""
    return not first.lstrip().startswith(b"{")


def _csv_parser(path: Path, header: bytes) -> Parse:
    try:
        names = [name.strip() for name in _fields(header.decode())]
    except ValueError:
        raise ReplayError(f"{path} does not begin with a CSV header or a JSON object") from None
    if missing := [column for column in COLUMNS if column not in names]:
        raise ReplayError(f"{path} has no column {', '.join(missing)}; it needs {', '.join(COLUMNS)}")

    def parse(text: str) -> Mapping[str, Any]:
        values = _fields(text)
        if len(values) != len(names):
            raise ValueError(f"has {len(values)} fields, the header has {len(names)}")
        return dict(zip(names, values, strict=True))

    return parse


def _fields(text: str) -> list[str]:
    # A record is one line: a stray quote must spoil its own line and not the rest of the file.
    try:
        return next(csv.reader([text], strict=True))
    except csv.Error as error:
        raise ValueError(f"is not CSV: {error}") from None


def _read(line: Line, parse: Parse) -> Event | BadLine:
    if line.content is None:
        return BadLine(line.number, f"is longer than {MAX_LINE_BYTES} bytes")
    try:
        return _event(line.number, parse(line.content.decode()))
    except UnicodeDecodeError:
        return BadLine(line.number, "is not UTF-8")
    except json.JSONDecodeError as error:
        return BadLine(line.number, f"is not JSON: {error.msg}")
    except RecursionError:
        return BadLine(line.number, "is nested too deep")
    except (InvalidInput, ValueError) as error:
        return BadLine(line.number, str(error))


def _event(number: int, fields: Mapping[str, Any]) -> Event:
    if not isinstance(fields, dict):
        raise InvalidInput("is not a JSON object")
    if missing := [column for column in COLUMNS if column not in fields]:
        raise InvalidInput(f"has no {', '.join(missing)}")
    task_id = validation.identifier("task_id", fields["task_id"])
    assignee_id = validation.optional_identifier("assignee_id", fields["assignee_id"]) or ""
    keys.task_assigned(task_id, assignee_id, _LAST_GENERATION)
    return Event(
        number=number,
        occurred_at=_instant(fields["occurred_at"]),
        task_id=task_id,
        kind=_kind(fields["event"]),
        assignee_id=assignee_id,
        caller_agent_id=_caller(fields["actor_type"], fields["actor_id"]),
    )


def _instant(value: object) -> dt.datetime:
    written = validation.text("occurred_at", value)
    try:
        found = dt.datetime.fromisoformat(written.strip())
        at = found.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"occurred_at: {written!r} is no instant like 2010-03-31T14:59:42Z") from None
    if found.tzinfo is None:
        raise InvalidInput(f"occurred_at: {written!r} has no time zone")
    return at


def _kind(value: object) -> Kind:
    if value == CREATE:
        return "create"
    if value == ASSIGN:
        return "assign"
    raise InvalidInput(f"event: must be {CREATE} or {ASSIGN}, not {value!r}")


def _caller(actor_type: object, actor_id: object) -> str:
    """Return the acting agent; none is the user, and so is an agent without an id (ADM-5.8)."""
    if actor_type not in ("user", "agent", "", None):
        raise InvalidInput(f"actor_type: must be user or agent, not {actor_type!r}")
    return (validation.optional_identifier("actor_id", actor_id) or "") if actor_type == "agent" else ""


def _in_order(found: Event | BadLine, created: SpilledSet) -> Event | BadLine:
    if isinstance(found, BadLine):
        return found
    if found.kind == CREATE and not created.add(found.task_id):
        return BadLine(found.number, f"task_id: {found.task_id!r} was created on an earlier line")
    if found.kind == ASSIGN and found.task_id not in created:
        return BadLine(found.number, f"task_id: {found.task_id!r} is not created on an earlier line")
    return found
