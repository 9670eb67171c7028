"""The lines of a recorded history, plain or gzipped, in bounded memory."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from office_tasks.replay.errors import ReplayError

MAX_LINE_BYTES: Final = 64 * 1024
_GZIP: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """One line that is not blank. `content` is None when it is longer than `MAX_LINE_BYTES`."""

    number: int
    content: bytes | None


class Survey(NamedTuple):
    """What one pass over the file tells."""

    digest: str
    lines: int
    first: bytes


def lines(path: Path) -> Iterator[Line]:
    """Yield the lines, numbered from 1, without their ends; blank ones are passed over.

    Raises:
        ReplayError: the file cannot be read.
    """
    with _opened(path) as stream:
        for number, raw in enumerate(_bounded(stream), start=1):
            content = raw.removeprefix(_BOM) if raw is not None and number == 1 else raw
            if content is None or content.strip():
                yield Line(number, content if content is None else content.rstrip(b"\r\n"))


def survey(path: Path) -> Survey:
    """Read the whole file once: the digest of its content (the same gzipped or not), and how many lines hold something.

    Raises:
        ReplayError: the file cannot be read, or holds nothing.
    """
    digest = hashlib.sha256()
    first: bytes | None = None
    found = 0
    for line in lines(path):
        content = line.content or b""
        digest.update(b"%d:%b\n" % (line.number, content))
        first = content if first is None else first
        found += 1
    if first is None:
        raise ReplayError(f"{path} is empty")
    return Survey(digest.hexdigest(), found, first)


def _bounded(stream: BinaryIO) -> Iterator[bytes | None]:
    while raw := stream.readline(MAX_LINE_BYTES):
        if len(raw) < MAX_LINE_BYTES or raw.endswith(b"\n"):
            yield raw
            continue
        while raw and not raw.endswith(b"\n"):
            raw = stream.readline(MAX_LINE_BYTES)
        yield None


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        if not path.is_file():
            raise ReplayError(f"{path} is no file" if path.exists() else f"there is no file {path}")
        with path.open("rb") as raw:
            zipped = raw.peek(len(_GZIP)).startswith(_GZIP)
            if path.suffix == ".gz" and not zipped:
                raise ReplayError(f"{path} is named .gz and is not gzipped")
            yield cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if zipped else raw
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise ReplayError(f"{path} is damaged: its gzip stream ends early or does not fit its checksum") from None
    except OSError as error:
        raise ReplayError(f"{path} cannot be read: {error.strerror or error}") from None
