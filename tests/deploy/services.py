"""What docker-compose.yml says of each service, for tests that run it as processes: no engine reads it here."""

from __future__ import annotations

import re
from typing import NamedTuple

import yaml

from tests.nodes.engine import ROOT

COMPOSE = (ROOT / "docker-compose.yml").read_text()
DEFINED = yaml.safe_load(COMPOSE)["services"]
LONG_RUNNING = tuple(name for name in DEFINED if name != "migrate")
# What a test has instead: its own servers, ports and passwords.
_PLACES = ("URL", "PORT", "ADDRESS", "PASSWORD", "AUTH", "POSTGRES_")


class Service(NamedTuple):
    """A service's command, the environment that is the same wherever it runs, and its health check, as words."""

    command: list[str]
    environment: dict[str, str]
    check: list[str]
    grace: float


def service(name: str) -> Service:
    defined = DEFINED[name]
    kind, *words = _plain(defined.get("healthcheck", {}).get("test", ["CMD"]))
    kept = {
        name: value for name, value in defined.get("environment", {}).items() if not any(p in name for p in _PLACES)
    }
    return Service(
        command=_plain(defined.get("command", [])),
        environment=kept,
        check=words if kind == "CMD" else ["sh", "-c", *words],
        grace=float(re.fullmatch(r"(\d+)s", defined.get("stop_grace_period", "10s"))[1]),
    )


def _plain(words: list[str]) -> list[str]:
    return [word.replace("$$", "$") for word in words]
