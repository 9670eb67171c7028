"""What Postgres would do with the statements that admission sends: the plans of those very statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from sqlalchemy import Engine, event, text


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
