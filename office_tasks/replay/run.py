"""One replay from beginning to end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from db.errors import brief
from office_tasks.replay import via_celery, virtual
from office_tasks.replay.errors import ReplayError, ReplayStopped
from office_tasks.replay.events import BadLine, events, has_header
from office_tasks.replay.lines import Survey, survey
from office_tasks.replay.report import SHOWN, Report
from office_tasks.replay.servers import database, worker
from office_tasks.replay.stage import Stage, opened
from office_tasks.replay.tally import Tally


@dataclass(frozen=True, slots=True)
class Replay:
    """What to replay, and how.

    Attributes:
        file: CSV or JSON lines, gzipped or not.
        via_celery: push the events through the broker, in real time; otherwise apply each at its own instant.
        strict: one bad line stops the replay before anything is written.
        allow_shared: replay into a database that other workspaces live in.
        data: where a throwaway server keeps its files for the next replay.
        log_level: of the logs on standard error.
    """

    file: Path
    via_celery: bool = False
    strict: bool = False
    allow_shared: bool = False
    data: Path | None = None
    log_level: str = "ERROR"


def replay(asked: Replay, tally: Tally, report: Report, stop: threading.Event) -> None:
    """Replay the file until it ends or `stop` is set; what became of it is in `tally`, whatever happens (OPS-1.5).

    Raises:
        ReplayError: it cannot begin: nothing was written.
        ReplayStopped: it cannot go on: what `tally` says was applied.
        DevStackError: a throwaway server cannot be started.
        DBAPIError: Postgres failed before the first event.
    """
    found = survey(asked.file)
    _check(asked, report)
    expected = found.lines - has_header(found.first)
    with _stage(asked, found) as stage, _stopped_by_postgres():
        if asked.via_celery:
            with worker(stage.engine, asked.log_level) as app, report.progress(expected), tally.timed():
                lines = events(asked.file)
                via_celery.run(stage, app, lines, tally, complain=report.complain, advance=report.advance, stop=stop)
        else:
            with report.progress(expected), tally.timed():
                _back_test(asked, stage, tally, report, expected, stop)


@contextmanager
def _stopped_by_postgres() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        raise ReplayStopped(f"Postgres failed: {brief(error)}") from None


def _check(asked: Replay, report: Report) -> None:
    """Read the header, and with `strict` every line, before anything is started or written."""
    lines = events(asked.file)
    if not asked.strict:
        next(lines, None)
        return
    bad = 0
    for line in lines:
        if isinstance(line, BadLine):
            bad += 1
            report.complain(line)
    if bad:
        more = f", the first {SHOWN} of them above" if bad > SHOWN else ""
        raise ReplayError(f"{asked.file} has {bad} bad line{'s' if bad > 1 else ''}{more}: nothing was written")


@contextmanager
def _stage(asked: Replay, found: Survey) -> Iterator[Stage]:
    with (
        database(asked.data) as engine,
        opened(engine, found.digest, allow_shared=asked.allow_shared) as stage,
    ):
        yield stage


def _back_test(asked: Replay, stage: Stage, tally: Tally, report: Report, expected: int, stop: threading.Event) -> None:
    virtual.run(
        stage,
        events(asked.file),
        tally,
        expected=expected,
        complain=report.complain,
        advance=report.advance,
        stop=stop,
        log_level=asked.log_level,
    )
