"""What a command said, and how a test that expects no error reads it."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Said(NamedTuple):
    code: int
    out: str
    err: str

    def lines(self) -> list[str]:
        """Return what it said, as a command that succeeded."""
        assert (self.code, self.err) == (0, ""), self
        return self.out.splitlines()

    def document(self) -> Any:
        """Return the JSON that it said, as a command that succeeded."""
        return json.loads("\n".join(self.lines()))


def told(run, *words: str) -> list[str]:
    return run(*words).lines()


def as_json(run, *words: str) -> Any:
    return run(*words, "--json").document()
