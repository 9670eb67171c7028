"""Run PostgreSQL under root: it refuses to be root, so it becomes `nobody`, who must be able to reach its files."""

import os
import pwd
import shutil
import stat
import tempfile
from pathlib import Path

from office_tasks.devstack.binaries import PostgresPrograms
from office_tasks.devstack.errors import DevStackError
from office_tasks.devstack.lock import remove_if_abandoned

USER = "nobody"
PREFIX = "office-tasks-"
ELSEWHERE = "elsewhere"
"""Name of the symbolic link in a data directory to where the files of an unreachable one really are."""


def server_user() -> str | None:
    """Who PostgreSQL runs as: None for the caller, `nobody` for root.

    Raises:
        DevStackError: root, and the system has no such account.
    """
    if os.geteuid() != 0:
        return None
    try:
        pwd.getpwnam(USER)
    except KeyError:
        raise DevStackError(
            f"PostgreSQL refuses to run as root and there is no account {USER}: run as another user"
        ) from None
    return USER


def reachable(path: Path) -> bool:
    """Whether everyone may traverse every directory above `path` and read and traverse `path` itself."""
    path = path.resolve()
    above = all(parent.stat().st_mode & stat.S_IXOTH for parent in path.parents)
    return above and bool(path.stat().st_mode & stat.S_IXOTH)


def temporary_home() -> Path:
    """A new directory for a server's files that `server_user()` can reach.

    Raises:
        DevStackError: no temporary directory of the system is reachable.
    """
    for parent in map(Path, (tempfile.gettempdir(), "/var/tmp", "/tmp")):  # noqa: S108  # mkdtemp below is safe
        if parent.is_dir() and (server_user() is None or reachable(parent)):
            for left in parent.glob(f"{PREFIX}*"):  # by a killed supervisor
                remove_if_abandoned(left)
            home = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent)).resolve()
            home.chmod(0o700 if server_user() is None else 0o711)
            return home
    raise DevStackError(f"{USER} can reach no temporary directory: point TMPDIR at one with `chmod o+x` on its path")


def reachable_home(home: Path) -> Path:
    """`home`, or a directory outside that `home` links to, when `home` lies where `nobody` may not go.

    The link is only read from a directory that others cannot write to, so nobody else chooses where it points.
    """
    if server_user() is None or reachable(home):
        return home
    link = home / ELSEWHERE
    if not link.is_dir():  # absent, or its target was cleaned away
        link.unlink(missing_ok=True)
        link.symlink_to(temporary_home())
    return link.resolve()


def reachable_programs(programs: PostgresPrograms, home: Path) -> PostgresPrograms:
    """The programs, or a copy of them in `home` when `nobody` may not go where they are installed.

    Raises:
        DevStackError: they cannot be copied, since they belong to the system.
    """
    if server_user() is None or reachable(programs.bin / "postgres"):
        return programs
    if not programs.portable:
        raise DevStackError(f"{USER} may not run {programs.bin}: `chmod o+x` the directories above it")
    copy = home / "programs"
    shutil.rmtree(copy, ignore_errors=True)
    package = programs.tree.parent
    for source in (package, package.with_name(f"{package.name}.libs")):  # the wheel's libraries lie beside it
        if source.is_dir():
            shutil.copytree(source, copy / source.name, symlinks=True)
    _open_to_all(copy)
    tree = copy / package.name / programs.tree.name
    return PostgresPrograms(tree / "bin", tree, portable=True)


def give(path: Path, user: str | None) -> None:
    """Make `path` and all below it belong to `user`; nothing for None."""
    if user is None:
        return
    shutil.chown(path, user)
    for parent, directories, files in os.walk(path):
        for name in (*directories, *files):
            shutil.chown(Path(parent, name), user)


def _open_to_all(tree: Path) -> None:
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            runs = path.is_dir() or mode & stat.S_IXUSR
            path.chmod(mode | (0o555 if runs else 0o444))
