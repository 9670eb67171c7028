"""Become a server that ends with its supervisor: `python -I -S tether.py PARENT SIGNAL USER COMMAND...`.

Run as a script, on the standard library alone. A function in the forked child could do the same, but a fork of a
process with threads may run next to no Python safely; and it is root who must load Python, `nobody` may not be able to.
"""

import ctypes
import os
import pwd
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Give up root for USER if that is not empty, ask the kernel for SIGNAL at PARENT's death, become COMMAND."""
    parent, death, user, *command = sys.argv[1:]
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
    if user:
        _become(user)
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, int(death), 0, 0, 0)  # after the change of user, which clears it
    if os.getppid() != int(parent):
        sys.exit("the supervisor died first")
    # What Python ignores, or a process of Celery's pool, its successor would ignore too.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT):
        signal.signal(ignored, signal.SIG_DFL)
    os.execv(command[0], command)  # noqa: S606  # no shell is wanted


def _become(user: str) -> None:
    account = pwd.getpwnam(user)
    os.setgroups([])
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)


if __name__ == "__main__":
    main()
