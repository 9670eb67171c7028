"""Statements of the paths that every message takes, rendered once.

SQLAlchemy compiles `text()` from its cache, which costs each execution a walk over all its parameters; these go to the
driver as they are. Parameters are bound, always; JSON is given as text (`as_json`) and cast in the statement.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, CursorResult, text
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg


class Statement:
    """SQL with `:name` parameters."""

    def __init__(self, sql: str) -> None:
        self._sql = sql

    @cached_property
    def _rendered(self) -> str:
        return str(text(self._sql).compile(dialect=PGDialect_psycopg()))  # type: ignore[no-untyped-call]

    def run(self, connection: Connection, params: Mapping[str, Any]) -> CursorResult[*tuple[Any, ...]]:
        """Execute it; parameters that it does not name are passed over."""
        return connection.exec_driver_sql(self._rendered, dict(params))


def as_json(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return `value` as JSON text for a parameter that the statement casts."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
