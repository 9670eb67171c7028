"""A real PostgreSQL server as a child process."""

import contextlib
import os
import pwd
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

import psutil
import psycopg

from office_tasks.devstack import privilege
from office_tasks.devstack.binaries import PostgresPrograms, find_postgres
from office_tasks.devstack.errors import DevStackError
from office_tasks.devstack.orphans import kill_tree, stop_orphans
from office_tasks.devstack.ports import HOST
from office_tasks.devstack.server import Server, ended

THROWAWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
ROLE = "postgres"
INITDB_SECONDS = 120.0


class Postgres(Server):
    """PostgreSQL on TCP only, role `postgres`, no password, database `postgres`.

    Args:
        data_dir: where its files stay; None for a directory that `stop` removes.
        durable: False gives up all safety against a crash of the machine, for speed in tests. `kill` may then lose the
            commits of the last second; a test that counts on them sets `{"synchronous_commit": "on"}`.
        port: the TCP port; None for a free one.
        settings: more of the server's settings, by name, such as `{"max_connections": "300"}`.
    """

    program = "postgres"
    stop_signal = signal.SIGINT  # "fast": ends sessions, then checkpoints
    death_signal = signal.SIGINT

    def __init__(
        self,
        data_dir: Path | None = None,
        *,
        durable: bool = True,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(data_dir, port)
        self._durable = durable
        self._settings = {} if settings is None else dict(settings)
        self._programs: PostgresPrograms | None = None
        self._place: Path | None = None

    @property
    def url(self) -> str:
        """SQLAlchemy URL of its database `postgres`."""
        return f"postgresql+psycopg://{ROLE}@{HOST}:{self.port}/postgres"

    @property
    def cluster(self) -> Path:
        """The server's own data directory (PGDATA)."""
        return (self._place or self.home) / "cluster"

    @property
    def _directory(self) -> Path:
        return self.cluster

    def _user(self) -> str | None:
        return privilege.server_user()

    def _prepare(self) -> None:
        if self._programs is None or self._place is None:
            self._place = privilege.reachable_home(self.home)
            self._programs = privilege.reachable_programs(find_postgres(), self._place)
        self._stop_orphans()
        self._check_owner()
        if self._has_cluster():
            self._check_version()
            self._forget_reused_pid()
        else:
            self._initialise()

    def stop(self) -> None:
        """Stop it cleanly, release its directory, and remove that when it was a temporary one."""
        super().stop()
        self._programs = self._place = None

    def _check_owner(self) -> None:
        user = self._user()
        ours = os.geteuid() if user is None else pwd.getpwnam(user).pw_uid
        if self.cluster.exists() and self.cluster.stat().st_uid != ours:
            owner = self.cluster.owner()
            raise DevStackError(f"{self.cluster} belongs to {owner}: run as {owner}, remove it or choose another one")

    def _has_cluster(self) -> bool:
        if (self.cluster / "PG_VERSION").exists():
            return True
        if self.cluster.exists() and any(self.cluster.iterdir()):
            raise DevStackError(f"{self.cluster} is no PostgreSQL data directory: move it away or choose another one")
        return False

    def _check_version(self) -> None:
        made_by = (self.cluster / "PG_VERSION").read_text().strip()
        ours = self._found().major()
        if made_by != str(ours):
            raise DevStackError(
                f"{self.cluster} was made by PostgreSQL {made_by} and this is PostgreSQL {ours}: "
                f"remove it (`make clean` removes .data), or install PostgreSQL {made_by}"
            )

    def _forget_reused_pid(self) -> None:
        """Drop a postmaster.pid that names a living process: with our orphans stopped, it is a stranger's."""
        pid_file = self.cluster / "postmaster.pid"
        with contextlib.suppress(FileNotFoundError, ValueError, IndexError):
            if psutil.pid_exists(int(pid_file.read_text().splitlines()[0])):
                pid_file.unlink()

    def _initialise(self) -> None:
        """Make the cluster beside its place and move it there whole: one killed midway is never taken for one."""
        half = self.cluster.with_name("cluster.new")
        stop_orphans(half, ("initdb", self.program), signal.SIGTERM)
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(mode=0o700)
        privilege.give(half, self._user())
        sync = () if self._durable else ("--no-sync",)
        initdb: list[str | Path] = [self._found().bin / "initdb", "-D", half, "-U", ROLE, "--auth=trust", *sync]
        made = self._spawn([*initdb, "-E", "UTF8", "--no-locale"], half, signal.SIGKILL)
        if not ended(made, INITDB_SECONDS):
            kill_tree(made.pid)
        if made.wait() != 0:
            raise DevStackError(f"initdb failed on {half}{self._last_words()}")
        half.replace(self.cluster)

    def _found(self) -> PostgresPrograms:
        if self._programs is None:
            raise DevStackError("postgres is not started: call start()")
        return self._programs

    def _command(self, port: int) -> list[str | Path]:
        settings = {
            "listen_addresses": HOST,
            "unix_socket_directories": "",  # a socket's path is limited to about 100 bytes; a checkout's is not
            "timezone": "UTC",
            "log_timezone": "UTC",
            **({} if self._durable else THROWAWAY),
            **self._settings,
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [self._found().bin / "postgres", "-D", self.cluster, "-p", str(port), *words]

    def _answers(self, port: int, pid: int) -> bool:
        if not self._says_ready(pid):
            return False
        try:
            psycopg.connect(
                host=HOST, port=port, user=ROLE, dbname="postgres", connect_timeout=2, sslmode="disable"
            ).close()
        except psycopg.OperationalError:
            return False
        return True

    def _says_ready(self, pid: int) -> bool:
        """Whether postmaster.pid says so of this very process: on a lost port another server would answer."""
        with contextlib.suppress(FileNotFoundError):
            lines = (self.cluster / "postmaster.pid").read_text().splitlines()
            return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"  # noqa: PLR2004
        return False
