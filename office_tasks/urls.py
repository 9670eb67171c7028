"""The URLs that Celery would otherwise find fault with in the middle of its start, in a trace of its own."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from celery.app.backends import BACKEND_ALIASES
from kombu.transport import TRANSPORT_ALIASES

BROKERS: Final = frozenset(TRANSPORT_ALIASES)
BACKENDS: Final = frozenset(BACKEND_ALIASES)
STREAMS: Final = frozenset({"redis", "rediss", "unix"})

ESCAPE: Final = "in a password @ : / ? # must be written as %40 %3A %2F %3F %23"

_NUMBERED: Final = ("redis", "rediss")
_NUMBER: Final = re.compile(r"/?\d*")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")


def check(variable: str, urls: str, schemes: Collection[str]) -> None:
    """Let a URL pass, or several joined with `;`, when each has a known scheme, and port and database are numbers.

    Raises:
        ValueError: the sentence names the variable, and holds nothing of the URL but its scheme.
    """
    for url in urls.split(";"):
        scheme, mark, _ = url.partition("://")
        if not mark or not _SCHEME.fullmatch(scheme):
            raise ValueError(f"{variable} is no URL: redis://:password@host:port/number")
        if scheme.partition("+")[0] not in schemes:
            raise ValueError(f"{variable}: {scheme}:// is not known here; redis:// is")
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            raise ValueError(f"{variable}: its port is no number from 0 to 65535") from None
        # What follows the host is told to whoever cannot connect, and `/`, `?` or `#` would end the password early.
        if parts.netloc and "@" in parts.path + parts.query + parts.fragment:
            raise ValueError(f"{variable}: {ESCAPE}")
        if scheme in _NUMBERED and not _NUMBER.fullmatch(parts.path):
            raise ValueError(f"{variable}: its database is no number: redis://:password@host:port/number")
