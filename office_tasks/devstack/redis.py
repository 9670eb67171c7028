"""A real Redis server as a child process."""

import signal
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from office_tasks.devstack.binaries import find_redis
from office_tasks.devstack.ports import HOST
from office_tasks.devstack.server import Server


class Redis(Server):
    """Redis on TCP that keeps nothing on disk and evicts nothing, as a broker must not.

    Args:
        data_dir: where its log goes; None for a directory that `stop` removes.
        port: the TCP port; None for a free one.
    """

    program = "redis"
    stop_signal = signal.SIGTERM
    death_signal = signal.SIGKILL  # it has nothing to save, and a paused one would not hear another

    def __init__(self, data_dir: Path | None = None, port: int | None = None) -> None:
        super().__init__(data_dir, port)
        self._binary: Path | None = None

    @property
    def url(self) -> str:
        """URL of its database 0."""
        return f"redis://{HOST}:{self.port}/0"

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections, accepts new ones and answers none."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT, after `pause`."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    @property
    def _directory(self) -> Path:
        return self.home

    def _prepare(self) -> None:
        self._binary = find_redis()
        self._stop_orphans()

    def _command(self, port: int) -> list[str | Path]:
        where = ["--bind", HOST, "--port", str(port), "--dir", str(self.home), "--daemonize", "no"]
        what = ["--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"]
        return [self._binary or find_redis(), *where, *what]

    def _answers(self, port: int, pid: int) -> bool:
        once = Retry(NoBackoff(), 0)  # the caller asks again
        client = redis.Redis(host=HOST, port=port, socket_timeout=1, socket_connect_timeout=1, retry=once)
        try:
            return bool(client.info("server")["process_id"] == pid)
        except redis.RedisError:
            return False
        finally:
            client.close()
