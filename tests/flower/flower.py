"""A real Flower, as `office flower` or Celery's own command starts it, and who visits it."""

from __future__ import annotations

import base64
import socket
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.canary import hidden
from tests.nodes.engine import ProcEngine
from tests.nodes.waiting import until
from tests.nodes.worker import inherited

USER = "watcher"
PASSWORD = hidden.FLOWER
OFFICE = hidden.program("flower")
CELERY = hidden.program("celery", "flower")
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Answered(NamedTuple):
    status: int
    body: str
    headers: Mapping[str, str]


class Flower:
    """One Flower on a port of its own."""

    def __init__(self, engine: ProcEngine, env: Mapping[str, str], command: Sequence[str], *words: str) -> None:
        self.port = free_port()
        login = {"FLOWER_BASIC_AUTH": f"{USER}:{PASSWORD}", **inherited(), **env}
        self.node = engine.run([*command, f"--port={self.port}", *words], name="flower", env=login)

    def ready(self) -> Flower:
        until(self._answers, timeout=60, what="Flower's health check")
        return self

    def visit(
        self, path: str, *, method: str = "GET", login: bool = True, body: bytes | None = None, **headers: str
    ) -> Answered:
        """Ask for a page; `Origin="…"` and the like are headers."""
        word = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        sent = {**({"Authorization": f"Basic {word}"} if login else {}), **headers}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=body, method=method, headers=sent)
        try:
            with _opener.open(request, timeout=30) as found:
                return Answered(found.status, found.read().decode(), dict(found.headers))
        except urllib.error.HTTPError as error:
            with error:
                return Answered(error.code, error.read().decode(), dict(error.headers))

    def _answers(self) -> bool:
        assert self.node.status == "running", self.node.logs().decode()
        try:
            return self.visit("/healthcheck", login=False).status > 0  # under a prefix it is not there, and answers
        except OSError:
            return False


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]
