"""A set of texts that may outgrow memory: in a private temporary file that nobody else sees and nothing outlives."""

from __future__ import annotations

import sqlite3
from types import TracebackType
from typing import Self


class SpilledSet:
    """Texts, each held once. A few MB stay in memory, the rest lies on disk until it is closed."""

    def __init__(self) -> None:
        # The empty name is SQLite's for a temporary database that begins in memory and spills.
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE texts (text BLOB PRIMARY KEY) WITHOUT ROWID")

    def add(self, text: str) -> bool:
        """Add `text`; False when it was there already."""
        return self._database.execute("INSERT OR IGNORE INTO texts VALUES (?)", (text.encode(),)).rowcount == 1

    def __contains__(self, text: str) -> bool:
        return self._database.execute("SELECT 1 FROM texts WHERE text = ?", (text.encode(),)).fetchone() is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()
