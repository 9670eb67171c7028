"""The URLs that Celery would otherwise find fault with in the middle of its start, in a trace of its own."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from celery.app.backends import BACKEND_ALIASES
from kombu.transport import TRANSPORT_ALIASES

BROKERS: Final = frozenset(TRANSPORT_ALIASES)
BACKENDS: Final = frozenset(BACKEND_ALIASES)
STREAMS: Final = frozenset({"redis", "rediss", "unix"})


def check(variable: str, urls: str, schemes: Collection[str]) -> None:
    """Let a URL pass, or several joined with `;`, when each has a known scheme and a port that is one.

    Raises:
        ValueError: the sentence names the variable, and holds nothing of the URL but its scheme.
    """
    for url in urls.split(";"):
        scheme, mark, _ = url.partition("://")
        if not mark:
            raise ValueError(f"{variable} is no URL: redis://:password@host:port/number")
        if scheme.partition("+")[0] not in schemes:
            raise ValueError(f"{variable}: {scheme}:// is not known here; redis:// is")
        try:
            _ = urlsplit(url).port
        except ValueError:
            raise ValueError(f"{variable}: its port is no number from 0 to 65535") from None
