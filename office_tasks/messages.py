"""What a broker message must look like before a worker takes it up: Celery's protocol 2, and nothing that breaks it."""

from __future__ import annotations

from typing import Any, Final

from office_tasks import validation
from office_tasks.errors import InvalidInput

# A mutation's wakes are named `<message id>#<n>` and are identifiers too (ADM-8.3).
MAX_ID_BYTES: Final = validation.MAX_IDENTIFIER_BYTES - 15
# Deeper than any payload that is accepted, and far from what the pool's pickle can take: a body beyond it would end the
# worker that hands it to its pool, and the next one after it.
MAX_BODY_DEPTH: Final = 2 * validation.MAX_PAYLOAD_DEPTH

# What else Celery or we read after a place in the pool is taken: a failure there would never give it back.
_KINDS: Final = (
    ("stamps", dict, "an object"),
    ("stamped_headers", list, "a list"),
    ("headers", dict, "an object"),
    ("office_retries", dict, "an object"),
)


def check(message: Any) -> None:  # noqa: ANN401 - a kombu message
    """Pass a message that Celery can take up; its body is decoded here, once.

    Raises:
        InvalidInput: it is none; the sentence holds nothing of the body.
        DecodeError: the body cannot be read.
        ContentDisallowed: the body is not of a content type that we accept.
    """
    _check_headers(message.headers)
    _check_body(message.payload)


def check_id(value: object) -> str:
    """Return the id of a message when it is one.

    Raises:
        InvalidInput: it is no identifier, or longer than 240 bytes of UTF-8.
    """
    return validation.text("task_id", validation.identifier("task_id", value), limit=MAX_ID_BYTES)


def readable_id(message: Any) -> str | None:  # noqa: ANN401 - a kombu message
    """Return the id under which the caller waits for an answer, however little else of the message can be read."""
    found = message.headers.get("id") if isinstance(message.headers, dict) else None
    return found if isinstance(found, str) and found.strip() and "\0" not in found else None


def _check_headers(headers: object) -> None:
    if not isinstance(headers, dict):
        raise InvalidInput("headers: must be an object")
    validation.identifier("header task", headers.get("task"))
    check_id(headers.get("id"))
    if not _is_whole(headers.get("retries") or 0):
        raise InvalidInput("header retries: must be a whole number")
    if not _is_pair_of_limits(headers.get("timelimit")):
        raise InvalidInput("header timelimit: must be two numbers of seconds")
    for field, kind, word in _KINDS:
        if not isinstance(headers.get(field), kind | None):
            raise InvalidInput(f"header {field}: must be {word}")


def _check_body(body: object) -> None:
    match body:
        case [list(), dict(), dict() | None as embed]:
            validation.depth("body", body, MAX_BODY_DEPTH)
            _check_embed(embed or {})
        case _:
            raise InvalidInput("body: must be [args, kwargs, embed]")


def _check_embed(embed: dict[str, Any]) -> None:
    for field in ("callbacks", "errbacks", "chain"):
        signatures = embed.get(field)
        if signatures is not None and not (
            isinstance(signatures, list) and all(isinstance(each, dict) for each in signatures)
        ):
            raise InvalidInput(f"embed {field}: must be a list of signatures")
    if not isinstance(embed.get("chord"), dict | None):
        raise InvalidInput("embed chord: must be a signature")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_pair_of_limits(value: object) -> bool:
    match value:
        case None | [None | int() | float(), None | int() | float()]:
            return True
    return False
