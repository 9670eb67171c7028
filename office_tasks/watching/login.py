"""What counts as a login of Flower's. Imports nothing, so that the command line can ask before it loads anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

NO_LOGIN: Final = "office: Flower without a login is open to all: set FLOWER_BASIC_AUTH=user:password"
OPEN_API: Final = "office: FLOWER_UNAUTHENTICATED_API opens workers to all: unset it, and let clients log in"
LOOPBACK: Final = "127.0.0.1"


def are_logins(given: Sequence[str]) -> bool:
    """Tell whether there is a login, and each names a user and a password."""
    return bool(given) and all(user and password for user, _, password in (each.partition(":") for each in given))
