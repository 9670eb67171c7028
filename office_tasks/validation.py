"""What may come in: identifiers, keys and payloads, each refused by a sentence that names field and limit (ADM-8.2)."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable
from typing import Any, Final

from db.states import SEAT_ROLES
from office_tasks.errors import InvalidInput
from office_tasks.prose import shown

MAX_IDENTIFIER_BYTES: Final = 255
MAX_KEY_BYTES: Final = 1_024
MAX_TITLE_BYTES: Final = 1_024
MAX_BODY_BYTES: Final = 256 * 1024
MAX_PAYLOAD_BYTES: Final = 256 * 1024
MAX_PAYLOAD_DEPTH: Final = 64

_CONTAINERS: Final = (dict, list, tuple)
# A NUL character as JSON writes it; an escaped backslash before "u0000" makes it ordinary text.
_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def identifier(field: str, value: object) -> str:
    """Return `value` when it is a usable identifier: text, not blank, at most 255 bytes of UTF-8.

    Raises:
        InvalidInput: naming `field` and the limit.
    """
    found = text(field, value, limit=MAX_IDENTIFIER_BYTES)
    if not found.strip():
        raise InvalidInput(f"{field}: must not be empty or blank")
    return found


def optional_identifier(field: str, value: object) -> str | None:
    """Return an identifier, or None for None and the empty string, which mean that none is given."""
    return None if value is None or value == "" else identifier(field, value)


def text(field: str, value: object, *, limit: int | None = None) -> str:
    """Return `value` when it is text that Postgres can hold, of at most `limit` bytes of UTF-8.

    Raises:
        InvalidInput: not text, a NUL character, a lone surrogate, or too long.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{field}: must be text, not {type(value).__name__}")
    if "\0" in value:
        raise InvalidInput(f"{field}: must not contain a NUL character")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidInput(f"{field}: must not contain a lone surrogate") from None
    if limit is not None and size > limit:
        raise InvalidInput(f"{field}: is {size} bytes of UTF-8, the limit is {limit}")
    return value


def run_id(value: object) -> uuid.UUID:
    """Return the id of a run.

    Raises:
        InvalidInput: it is no UUID.
    """
    try:
        return uuid.UUID(text("run_id", value))
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"run_id: must be a UUID, not {shown(value)}") from None


def seat_role(value: object) -> str:
    """Return a role that a seat can have.

    Raises:
        InvalidInput: any other.
    """
    if not isinstance(value, str) or value not in SEAT_ROLES:
        raise InvalidInput(f"role: must be one of {', '.join(SEAT_ROLES)}, not {shown(value)}")
    return value


def flag(field: str, value: object) -> bool:
    """Return `value` when it is a boolean: what is merely true in Python ("no", 0.5) is not taken for a yes.

    Raises:
        InvalidInput: naming `field`.
    """
    if not isinstance(value, bool):
        raise InvalidInput(f"{field}: must be true or false, not {type(value).__name__}")
    return value


def given_key(value: object) -> str | None:
    """Return a key as its caller gave it; None and "" mean "no dedup" (ADM-3.1), blank is refused (C30)."""
    if value is None or value == "":
        return None
    found = text("idempotency_key", value, limit=MAX_KEY_BYTES)
    if not found.strip():
        raise InvalidInput("idempotency_key: must not be blank; leave it out for no deduplication")
    return found


def built_key(value: str) -> str:
    """Return a key that we built, at most 1,024 bytes long."""
    return text("key", value, limit=MAX_KEY_BYTES)


def payload(value: object, *, field: str = "payload", absent: str = "{}") -> str:
    """Return a payload, or what a handler returned, as the JSON text that is stored (ADM-8.1).

    Args:
        value: any JSON value.
        field: what it is called in a refusal.
        absent: what is stored for None.

    Raises:
        InvalidInput: not JSON, over 256 KiB, nested deeper than 64, NaN, Infinity, a NUL or a lone surrogate.
    """
    if value is None:
        return absent
    depth(field, value, MAX_PAYLOAD_DEPTH)
    try:
        encoded = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{field}: cannot be stored as JSON, which has no NaN and no Infinity: {error}") from None
    if _NUL.search(encoded):
        raise InvalidInput(f"{field}: must not contain a NUL character")
    return text(field, encoded, limit=MAX_PAYLOAD_BYTES)


def depth(field: str, value: object, limit: int) -> None:
    """Let JSON pass that is nested no deeper than `limit`; looks level by level, so that none can exhaust the stack.

    Raises:
        InvalidInput: it is nested deeper, or a key of an object is no text.
    """
    level: list[Any] = [value]
    seen = 0
    for _ in range(limit + 1):
        containers = [item for item in level if isinstance(item, _CONTAINERS)]
        if not containers:
            return
        # A container that stands in many places is small here and without bounds as JSON, where each takes two bytes.
        seen += len(containers)
        if 2 * seen > MAX_PAYLOAD_BYTES:
            raise InvalidInput(f"{field}: is longer than {MAX_PAYLOAD_BYTES} bytes of JSON")
        level = [item for container in containers for item in _items(field, container)]
    raise InvalidInput(f"{field}: is nested deeper than {limit}")


def _items(field: str, container: Any) -> Iterable[object]:  # noqa: ANN401 - any JSON container
    if not isinstance(container, dict):
        return container  # type: ignore[no-any-return]
    if not all(isinstance(key, str) for key in container):
        raise InvalidInput(f"{field}: the keys of an object must be text")
    return container.values()
