"""Ports for servers that are restarted on the port they had."""

import random
import socket

from office_tasks.devstack.errors import DevStackError

HOST = "127.0.0.1"
# Below every system's ephemeral range: a client that keeps retrying a stopped server's port could otherwise be
# given that very port as its own source, connect to itself and keep the server from coming back.
RANGE = range(20_000, 30_000)
ATTEMPTS = 100


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` of the loopback address now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def pick() -> int:
    """A port nobody listens on now.

    Raises:
        DevStackError: none was found.
    """
    rng = random.SystemRandom()  # not seeded: parallel test processes must not walk the same ports
    for _ in range(ATTEMPTS):
        port = rng.choice(RANGE)
        if is_free(port):
            return port
    raise DevStackError(f"no free port found on {HOST} between {RANGE.start} and {RANGE.stop}: stop some servers")
