"""A handler in Python: it computes the SHA-256 of the files that its run names (REC-2.4).

    OFFICE_RUN_HANDLER=examples.handler_python:checksums OFFICE_EXAMPLE_DIRECTORY=/srv/files office worker -Q execution

    queue_run.delay("ada", "checksums", {"files": ["a.iso", "b.iso"]})

Execution is at least once: a second attempt may start when the first one's worker died, and does not know how far that
came. So each file's sum is put in place whole, beside the file, and a later attempt passes over what is there.
"""

import datetime as dt
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from office_tasks import RetryAt, RunContext

CHUNK_BYTES = 1 << 20
PATIENCE = dt.timedelta(minutes=1)


def checksums(context: RunContext) -> dict[str, Any]:
    """Return the sums of the payload's files, by name; one that is not there yet is looked for in a minute.

    Raises:
        RetryAt: a file is not there.
        ValueError: a file lies outside the directory.
    """
    files = {name: _inside(Path(os.environ["OFFICE_EXAMPLE_DIRECTORY"]), name) for name in context.run.payload["files"]}
    if missing := [name for name, file in files.items() if not file.exists()]:
        raise RetryAt(dt.datetime.now(dt.UTC) + PATIENCE, f"not there yet: {', '.join(missing)}")
    sums: dict[str, str] = {}
    for name, file in files.items():
        if context.cancelled():
            break  # what is done stays done; the run is cancelled, with this as its result
        sums[name] = _known(file) or _compute(file, context.attempt, context.cancelled)
    return {"attempt": context.attempt, "sha256": sums}


def _inside(directory: Path, name: str) -> Path:
    # The payload is somebody else's text: it must not name what lies elsewhere.
    found = (directory / name).resolve()
    if not found.is_relative_to(directory.resolve()):
        raise ValueError(f"{name!r} is not in the directory")
    return found


def _known(file: Path) -> str | None:
    """Return what an earlier attempt computed, unless the file was changed after that."""
    found = _sum_of(file)
    fresh = found.exists() and found.stat().st_mtime_ns >= file.stat().st_mtime_ns
    return found.read_text().strip() if fresh else None


def _compute(file: Path, attempt: int, cancelled: Callable[[], bool]) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as data:
        while chunk := data.read(CHUNK_BYTES):
            if cancelled():
                raise InterruptedError(f"stopped within {file.name}")
            digest.update(chunk)
    # Written aside and moved into place: whoever finds the sum finds all of it, should two attempts overlap.
    aside = _sum_of(file).with_suffix(f".attempt-{attempt}")
    aside.write_text(digest.hexdigest() + "\n")
    aside.replace(_sum_of(file))
    return digest.hexdigest()


def _sum_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.sha256")
