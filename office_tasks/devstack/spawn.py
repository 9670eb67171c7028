"""Start a child that does not outlive its supervisor."""

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TETHER = Path(__file__).with_name("tether.py")


def spawn(
    argv: Sequence[str | Path], *, log: Path, cwd: Path, env: Mapping[str, str], user: str | None, death: signal.Signals
) -> subprocess.Popen[bytes]:
    """Start `argv` in a session of its own, its output appended to `log`.

    Args:
        argv: the command; its first word is an absolute path.
        log: where standard output and error go.
        cwd: the child's working directory, by which orphans are recognised.
        env: the whole environment of the child.
        user: who to run as, None for the caller.
        death: what the kernel sends when the supervisor dies (Linux; elsewhere the next start stops orphans).
    """
    tether = [sys.executable, "-I", "-S", TETHER, str(os.getpid()), str(int(death)), user or ""]

    def start() -> subprocess.Popen[bytes]:
        with log.open("ab") as out:
            return subprocess.Popen(  # noqa: S603  # the command is ours
                [str(word) for word in (*tether, *argv)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=dict(env),
                start_new_session=True,  # Ctrl-C reaches the supervisor only, which stops the servers in order
            )

    return _spawner(os.getpid()).submit(start).result()


@functools.cache
def _spawner(_pid: int) -> ThreadPoolExecutor:
    """The thread all children come from: the kernel ties their life to the thread, not to the process.

    A caller's own thread may end long before the process does. One per process, since threads do not survive a fork.
    """
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="devstack-spawner")
