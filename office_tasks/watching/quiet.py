"""What Flower logs: in our form, and nothing that was written or is secret (OPS-1.3)."""

from __future__ import annotations

import logging

from office_tasks.logs import configure_logs


def keep_quiet(level: str) -> None:
    """Have Flower log as the other processes do.

    At DEBUG it would log the arguments of what is sent through it, and the secret of its cookies.
    """
    configure_logs(level)
    logging.getLogger("flower").setLevel(logging.INFO)
