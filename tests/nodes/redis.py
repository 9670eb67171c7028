"""The Redis node as a process: pytest-celery's `RedisContainer` on a loopback port."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_celery import RedisContainer
from pytest_docker_tools.exceptions import ContainerFailed

from office_tasks.devstack import ports
from office_tasks.devstack.binaries import find_redis
from tests.nodes.ready import ProcReady

if TYPE_CHECKING:
    from tests.nodes.engine import ProcEngine
    from tests.nodes.handle import ProcHandle

ATTEMPTS = 5


class ProcRedis(ProcReady, RedisContainer):
    """A redis-server without persistence: a restart begins empty, on the same port."""

    def __init__(self, handle: ProcHandle, port: int) -> None:
        super().__init__(handle)
        self._port = port

    @property
    def hostname(self) -> str:
        return "127.0.0.1"

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"{self.prefix()}{self.hostname}:{self.port}/{self.vhost}"

    @property
    def host_url(self) -> str:
        return self.url


def run_redis(engine: ProcEngine, name: str) -> ProcRedis:
    """Start a server and wait until it takes connections; another port when somebody was quicker to take this one."""
    for _ in range(ATTEMPTS):
        port = ports.pick()
        options = RedisContainer.command("--port", str(port), "--bind", "127.0.0.1", "--dir", str(engine.directory))
        redis = ProcRedis(engine.run([str(find_redis()), *options[1:]], name=name, env=dict(os.environ)), port)
        try:
            redis.ready()
        except ContainerFailed:
            if "Address already in use" not in redis.logs():
                raise
        else:
            return redis
    raise RuntimeError(f"no free port for {name} in {ATTEMPTS} attempts")
