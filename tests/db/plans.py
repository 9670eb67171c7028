"""What Postgres would do with the statements that we send, the plans of those very statements; and a large office."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from sqlalchemy import Engine, event, text

from db.engine import autocommit, make_engine
from tests.databases import plain
from tests.support import T0, Board

PATIENT = dict.fromkeys(("statement_timeout", "idle_in_transaction_session_timeout"), "0")


class Plan(NamedTuple):
    """One statement's plan, flattened."""

    statement: str
    indexes: frozenset[str]
    scanned: frozenset[str]
    blocks: int
    kinds: frozenset[str]


@contextmanager
def statements(engine: Engine) -> Iterator[list[tuple[str, Any]]]:
    """Yield the list of the statements that go through the engine, with their parameters."""
    sent: list[tuple[str, Any]] = []

    def note(_connection, _cursor, statement, parameters, *_) -> None:
        sent.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)


def custom(engine: Engine, statement: str, parameters: Any) -> Plan:
    """Return the plan for these parameters; a statement that only reads is run, and its blocks are counted."""
    reads = "INSERT" not in statement and "UPDATE" not in statement
    options = "FORMAT JSON, ANALYZE, BUFFERS" if reads else "FORMAT JSON"
    with engine.connect() as connection:
        found = connection.exec_driver_sql(f"EXPLAIN ({options}) {statement}", parameters).scalar_one()
    return _flat(statement, found[0]["Plan"])


def generic(engine: Engine, statement: str, _parameters: Any) -> Plan:
    """Return the plan that a prepared statement keeps, whatever its parameters."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        names.append(match[1]) if match[1] not in names else None
        return f"${names.index(match[1]) + 1}"

    numbered = re.sub(r"%\((\w+)\)s", number, statement).replace("%%", "%").replace(":", r"\:")
    with engine.connect() as connection:
        found = connection.execute(text(f"EXPLAIN (FORMAT JSON, GENERIC_PLAN) {numbered}")).scalar_one()
    return _flat(statement, found[0]["Plan"])


KINDS = {"custom": custom, "generic": generic}


def scanned(plans: Iterable[Plan], grows: set[str]) -> list[tuple[str, frozenset[str]]]:
    """Return the statements that read a table of `grows` from end to end, and which."""
    return [(plan.statement, plan.scanned & grows) for plan in plans if plan.scanned & grows]


def indexes(plans: Iterable[Plan]) -> frozenset[str]:
    """Return every index that a plan uses."""
    return frozenset().union(*(plan.indexes for plan in plans))


@contextmanager
def large_office(make_database, template, *many: str, **binds) -> Iterator[Board]:
    """Yield an office of a module's own at T0, filled by each of `many`, which find T0 as `:at`; not analyzed."""
    url = make_database(template)
    engine = make_engine(plain(url), pool_size=4, session={**PATIENT, "office.now": T0.isoformat()})
    board = Board(engine).furnish()
    fill(board, *many, **binds)
    yield board
    engine.dispose()
    make_database.drop(url)


def fill(board: Board, *many: str, **binds) -> None:
    for each in many:
        board.execute(each, at=T0, **binds)


def analyze(board: Board) -> None:
    with autocommit(board.engine) as connection:
        connection.execute(text("VACUUM ANALYZE"))


def _flat(statement: str, root: dict[str, Any]) -> Plan:
    nodes = list(_nodes(root))
    return Plan(
        statement,
        frozenset(node["Index Name"] for node in nodes if "Index Name" in node),
        frozenset(node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"),
        root.get("Shared Hit Blocks", 0) + root.get("Shared Read Blocks", 0),
        frozenset(node["Node Type"] for node in nodes),
    )


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)
