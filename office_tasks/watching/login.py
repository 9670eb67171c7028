"""What counts as a login of Flower's. Imports nothing, so that the command line can ask before it loads anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

NO_LOGIN: Final = "office: Flower without a login is open to all: set FLOWER_BASIC_AUTH=user:password"
OPEN_API: Final = "office: FLOWER_UNAUTHENTICATED_API opens workers to all: unset it, and let clients log in"
LOOPBACK: Final = "127.0.0.1"
_NO: Final = ("", "n", "no", "f", "false", "off", "0")


def are_logins(given: Sequence[str]) -> bool:
    """Tell whether there is a login, and each names a user and a password."""
    return bool(given) and all(user and password for user, _, password in (each.partition(":") for each in given))


def opens_api(value: str) -> bool:
    """Tell whether a value of FLOWER_UNAUTHENTICATED_API is anything but a clear no."""
    return value.lower() not in _NO
