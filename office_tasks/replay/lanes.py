"""Who applies events one after the other: this process, or one beside it."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Protocol

from sqlalchemy.exc import DBAPIError

from db.engine import make_engine
from db.errors import brief
from office_tasks.errors import InvalidInput, NotFound
from office_tasks.logs import configure_logs
from office_tasks.producers import after, assignments, creation
from office_tasks.replay.errors import ReplayStopped
from office_tasks.replay.events import CREATE, BadLine, Event
from office_tasks.replay.identity import Identity
from office_tasks.replay.stage import Applied, Stage
from office_tasks.replay.tally import outcomes

Item = Event | Applied
# What became of the event's wakes, or why it was not applied.
Done = tuple[Item, list[str]] | BadLine


class Lane(Protocol):
    """Takes a share of events, then gives what became of them, in turns."""

    def give(self, share: Sequence[Item]) -> None:
        """Have the share applied, in its order."""

    def collect(self) -> Sequence[Done]:
        """Wait for what became of the share given last; nothing when there is none."""


class Near:
    """Applies in this process."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._done: list[Done] = []

    def give(self, share: Sequence[Item]) -> None:
        """Apply the share now."""
        self._done = [apply(self._stage, item) for item in share]

    def collect(self) -> Sequence[Done]:
        """Return what became of it."""
        done, self._done = self._done, []
        return done


class Far:
    """Applies in a process of its own, on a connection of its own."""

    def __init__(self, stage: Stage, log_level: str) -> None:
        # Spawned, not forked: this process may have threads.
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        url = stage.engine.url.render_as_string(hide_password=False)
        self._process = context.Process(target=_work, args=(theirs, url, stage.identity, log_level), daemon=True)
        self._process.start()
        theirs.close()
        self._busy = False

    def give(self, share: Sequence[Item]) -> None:
        """Send the share."""
        self._ours.send(share)
        self._busy = True

    def collect(self) -> Sequence[Done]:
        """Wait for what became of it.

        Raises:
            ReplayStopped: Postgres failed, or the process died.
        """
        if not self._busy:
            return []
        self._busy = False
        try:
            said: list[Done] | str = self._ours.recv()
        except EOFError:
            raise ReplayStopped("a process of the replay died") from None
        if isinstance(said, str):
            raise ReplayStopped(said)
        return said

    def close(self) -> None:
        """Let it finish what it has, and end."""
        self._ours.close()
        self._process.join()


@contextmanager
def far_lanes(stage: Stage, number: int, log_level: str) -> Iterator[list[Far]]:
    """Yield so many lanes beside this process, and end them."""
    found: list[Far] = []
    try:
        for _ in range(number):
            found.append(Far(stage, log_level))  # noqa: PERF401 - the ones started are closed when the next fails
        yield found
    finally:
        for lane in found:
            lane.close()


def _work(pipe: Connection, url: str, identity: Identity, log_level: str) -> None:
    # Ctrl-C reaches every process of the terminal; the replay says when it is over.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    configure_logs(log_level)
    engine = make_engine(url, application_name="office-replay")
    stage = Stage(engine, identity)
    # The pipe closes when the replay is over, or died.
    with suppress(EOFError, OSError):
        while True:
            pipe.send(_share(stage, pipe.recv()))
    engine.dispose()


def _share(stage: Stage, items: Sequence[Item]) -> list[Done] | str:
    try:
        return [apply(stage, item) for item in items]
    except DBAPIError as error:
        return f"Postgres failed: {brief(error)}"


def apply(stage: Stage, item: Item) -> Done:
    """Apply an event at its own instant, or settle what an earlier replay left unsettled.

    Raises:
        DBAPIError: Postgres failed.
    """
    if isinstance(item, Applied):
        after.settle(stage.engine, stage.mutation_id(item.event), item.event.occurred_at)
        return item, []
    try:
        return item, _outcomes(stage, item)
    except (InvalidInput, NotFound) as error:
        return BadLine(item.number, str(error))


def _outcomes(stage: Stage, event: Event) -> list[str]:
    known = stage.engine, stage.mutation_id(event)
    if event.kind == CREATE:
        return outcomes(creation.create_task(*known, **stage.create(event), instant=event.occurred_at))
    return outcomes(assignments.assign_task(*known, **stage.assign(event), instant=event.occurred_at))
