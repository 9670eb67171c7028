"""Kills the nodes of a test run that died without tearing them down.

A process of its own, in its own session: it reads `+pgid` and `-pgid` lines until the pipe from pytest closes (which
the kernel does even when pytest is killed) and then kills every process group still listed. Unlike PR_SET_PDEATHSIG
this reaches the children of a pool too, and works on macOS.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def listed(lines: Iterable[bytes]) -> set[int]:
    """Return the process groups that were added and not taken off again."""
    groups: set[int] = set()
    for line in lines:
        change = groups.add if line.startswith(b"+") else groups.discard
        change(int(line[1:]))
    return groups


def main() -> None:
    for group in listed(sys.stdin.buffer):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
