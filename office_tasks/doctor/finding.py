"""One finding."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is: with an `error` something does not work, with a `warn` it may not, or not for long."""

    OK = "ok"
    WARN = "warn"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, and what to do; nothing is to be done when it is `ok`."""

    check: str
    level: Level
    found: str
    advice: str = ""


def ok(check: str, found: str) -> Finding:
    """Return a finding of something that is as it should be."""
    return Finding(check, Level.OK, found)


def warn(check: str, found: str, advice: str) -> Finding:
    """Return a finding that somebody should look at."""
    return Finding(check, Level.WARN, found, advice)


def error(check: str, found: str, advice: str) -> Finding:
    """Return a finding of something that does not work."""
    return Finding(check, Level.ERROR, found, advice)
