"""Named fault points: nothing in production; a test arms them to kill, pause or fail a real process.

`OFFICE_FAULT_POINTS="after_commit=kill@/path"`: while the file exists, the process that passes `after_commit` removes
it and kills itself; `pause@` waits until the file is gone; `raise@` removes it and raises. The file makes a fault
strike once.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Final

ENVIRONMENT: Final = "OFFICE_FAULT_POINTS"


class FaultPointError(Exception):
    """What an armed fault point raises."""


def fault_point(name: str) -> None:
    """Pass the point `name`; does nothing unless the environment arms it."""
    if armed := os.environ.get(ENVIRONMENT):
        _strike(name, armed)


def _strike(name: str, armed: str) -> None:
    faults = dict(part.split("=", 1) for part in armed.split(","))
    verb, _, path = faults.get(name, "").partition("@")
    token = Path(path)
    if not verb or not token.exists():
        return
    if verb == "pause":
        while token.exists():
            time.sleep(0.02)
        return
    if not token.is_dir():
        token.unlink(missing_ok=True)
    if verb == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise FaultPointError(name)
