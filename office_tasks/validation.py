"""What may come in: identifiers, keys and payloads, each refused by a sentence that names field and limit (ADM-8.2)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, Final

from office_tasks.errors import InvalidInput

MAX_IDENTIFIER_BYTES: Final = 255
MAX_KEY_BYTES: Final = 1_024
MAX_PAYLOAD_BYTES: Final = 256 * 1024
MAX_PAYLOAD_DEPTH: Final = 64


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


def payload(value: object) -> str:
    """Return a payload as the JSON text that is stored; None is stored as `{}` (ADM-8.1).

    Raises:
        InvalidInput: not JSON, over 256 KiB, nested deeper than 64, NaN, Infinity, a NUL or a lone surrogate.
    """
    if value is None:
        return "{}"
    for leaf in _walk(value):
        _check_leaf(leaf)
    try:
        encoded = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"payload: cannot be stored as JSON: {error}") from None
    size = len(encoded.encode())
    if size > MAX_PAYLOAD_BYTES:
        raise InvalidInput(f"payload: is {size} bytes of JSON, the limit is {MAX_PAYLOAD_BYTES}")
    return encoded


def _walk(value: object) -> Iterator[object]:
    """Yield every key and every scalar, level by level, so that no nesting can exhaust the stack."""
    level: list[Any] = [value]
    for depth in range(MAX_PAYLOAD_DEPTH + 1):
        containers = [item for item in level if isinstance(item, dict | list | tuple)]
        yield from (item for item in level if not isinstance(item, dict | list | tuple))
        if containers and depth == MAX_PAYLOAD_DEPTH:
            raise InvalidInput(f"payload: is nested deeper than {MAX_PAYLOAD_DEPTH}")
        level = [item for container in containers for item in _items(container)]


def _items(container: Any) -> Iterator[object]:  # noqa: ANN401 - any JSON container
    if isinstance(container, dict):
        for key in container:
            if not isinstance(key, str):
                raise InvalidInput("payload: the keys of an object must be text")
            text("payload", key)
        yield from container.values()
    else:
        yield from container


def _check_leaf(leaf: object) -> None:
    if isinstance(leaf, str):
        text("payload", leaf)
    elif isinstance(leaf, float) and not math.isfinite(leaf):
        raise InvalidInput("payload: NaN and Infinity are not JSON")
