"""A producer hears within seconds that the broker does not answer."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap

import pytest

from office_tasks.devstack import ports
from tests.nodes.engine import ROOT

# A process of its own: the app's connections are made from the environment, once. A call that hangs is its end.
PRODUCER = """
    import signal
    from office_tasks import queue_run
    signal.alarm(5)
    try:
        queue_run.delay("ana", "manual_resume")
    except Exception as error:
        print(type(error).__name__)
"""


@pytest.fixture
def listener():
    """A port that accepts and never replies."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        yield silent.getsockname()[1]


@pytest.mark.parametrize("broker", ["refused", "silent"])
def test_delay_raises_within_five_seconds(broker, listener):
    """C29 (a), (b): a closed port, and one that accepts and never replies."""
    port = {"refused": ports.pick(), "silent": listener}[broker]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PRODUCER)],
        env={"OFFICE_BROKER_URL": f"redis://127.0.0.1:{port}/0", "PATH": ""},
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "OperationalError"
