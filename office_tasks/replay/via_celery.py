"""The live path: each event a message, as fast as the worker takes them.

A broker keeps no order between two messages, and the events of one task have one: an event is sent when the one before
it on its task is settled. The answers are read from Postgres, many at once.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from celery import Celery
from celery.exceptions import TimeoutError as NoResult
from kombu.exceptions import BatchPublishError, OperationalError

from db import replays
from db.engine import autocommit
from office_tasks.replay.errors import ReplayStopped
from office_tasks.replay.events import CREATE, BadLine, Event
from office_tasks.replay.stage import BATCH, Applied, Stage
from office_tasks.replay.tally import Tally, outcomes
from office_tasks.replay.worker import NOBODY, answers

IN_FLIGHT: Final = 300
HELD: Final = 5 * BATCH
LOOK_SECONDS: Final = 0.02
OVERDUE_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 60.0

Item = Event | Applied


class Flight:
    """The messages under way, and the events that wait for one of them."""

    def __init__(self, stage: Stage, app: Celery, tally: Tally, complain: Callable[[BadLine], None]) -> None:
        self._stage = stage
        self._app = app
        self._tally = tally
        self._complain = complain
        self._ready: deque[Item] = deque()
        self._behind: dict[str, deque[Item]] = {}
        self._flying: dict[str, tuple[Item, float]] = {}
        self._held = 0
        self._last_landing = time.monotonic()

    @property
    def has_room(self) -> bool:
        """Whether it takes another batch."""
        return self._held < HELD

    @property
    def is_over(self) -> bool:
        """Whether nothing is under way."""
        return not self._flying

    @property
    def is_empty(self) -> bool:
        """Whether nothing is under way and nothing waits."""
        return self._held == 0

    def board(self, batch: Iterable[Event | BadLine | Applied]) -> int:
        """Take a batch; return how many of it are accounted for already."""
        at_once = 0
        for item in batch:
            if isinstance(item, BadLine):
                self._complain(item)
                self._tally.invalid()
                at_once += 1
            elif isinstance(item, Applied) and item.settled:
                self._tally.already_applied()
                at_once += 1
            else:
                self._queue(item)
        return at_once

    def _queue(self, item: Item) -> None:
        self._held += 1
        task_id = _event(item).task_id
        if task_id in self._behind:
            self._behind[task_id].append(item)
        else:
            self._behind[task_id] = deque()
            self._ready.append(item)

    def launch(self) -> None:
        """Send what may be sent, in one batch.

        Raises:
            ReplayStopped: the broker does not take it.
        """
        number = min(len(self._ready), IN_FLIGHT - len(self._flying))
        if number <= 0:
            return
        try:
            with self._app.producer_or_acquire() as producer, producer.batch(max_size=IN_FLIGHT):
                for _ in range(number):
                    item = self._ready.popleft()
                    self._flying[self._mutation_id(item)] = item, time.monotonic()
                    self._send(item, producer=producer, retry=False, ignore_result=True)
        except (BatchPublishError, OperationalError) as error:
            raise ReplayStopped(f"the broker did not take the messages: {error}") from None

    def _send(self, item: Item, **options: Any) -> Any:  # noqa: ANN401 - Celery has no types
        mutation_id = self._mutation_id(item)
        if isinstance(item, Applied):
            options["task_id"] = f"{mutation_id}/settle"
            return self._app.send_task("office.settle_mutation", kwargs={"mutation_id": mutation_id}, **options)
        options["task_id"] = mutation_id
        if item.kind == CREATE:
            return self._app.send_task("office.create_task", kwargs=self._stage.create(item), **options)
        return self._app.send_task("office.assign_task", kwargs=self._stage.assign(item), **options)

    def land(self) -> int:
        """Count what was settled since the last look; return how many."""
        with autocommit(self._stage.engine) as connection:
            settled = replays.results(connection, list(self._flying))
        for mutation_id, result in settled.items():
            item = self._landed(mutation_id)
            if isinstance(item, Applied):
                self._tally.already_applied()
            else:
                self._tally.applied(item, outcomes(result))
        if settled:
            self._last_landing = time.monotonic()
        return len(settled)

    def _landed(self, mutation_id: str) -> Item:
        item, _ = self._flying.pop(mutation_id)
        self._held -= 1
        behind = self._behind[_event(item).task_id]
        if behind:
            self._ready.append(behind.popleft())
        else:
            del self._behind[_event(item).task_id]
        return item

    def ask_about_the_overdue(self) -> int:
        """Send the message that is under way longest once more, when that is too long, and wait for its own answer.

        It is the same message, so that nothing is applied twice. Return 1 when it cannot be applied, else 0.

        Raises:
            ReplayStopped: nobody answers, or the answer is not in our database.
        """
        now = time.monotonic()
        mutation_id, (item, sent) = next(iter(self._flying.items()))
        if now - sent < OVERDUE_SECONDS:
            return 0
        if not answers(self._app, 2.0):
            raise ReplayStopped(NOBODY)
        if now - self._last_landing > PATIENCE_SECONDS:
            raise ReplayStopped(f"nothing was applied for {PATIENCE_SECONDS:.0f} s, though a worker answers")
        del self._flying[mutation_id]
        self._flying[mutation_id] = item, now
        return self._ask(item, mutation_id)

    def _ask(self, item: Item, mutation_id: str) -> int:
        asked = self._send(item, ignore_result=False)
        try:
            error = asked.get(timeout=OVERDUE_SECONDS, propagate=False)
        except NoResult:
            return 0
        finally:
            asked.forget()
        if isinstance(error, BaseException):
            self._complain(BadLine(_event(item).number, str(error)))
            self._tally.invalid()
            self._landed(mutation_id)
            return 1
        with autocommit(self._stage.engine) as connection:
            if not replays.applied(connection, [mutation_id]):
                raise ReplayStopped("the worker that answers writes to another database than OFFICE_DATABASE_URL names")
        return 0

    def _mutation_id(self, item: Item) -> str:
        return self._stage.mutation_id(_event(item))


def _event(item: Item) -> Event:
    return item.event if isinstance(item, Applied) else item


def run(
    stage: Stage,
    app: Celery,
    found: Iterable[Event | BadLine],
    tally: Tally,
    *,
    complain: Callable[[BadLine], None],
    advance: Callable[[int], None],
    stop: threading.Event,
) -> None:
    """Push the events until they end; once `stop` is set, only wait for those under way.

    Raises:
        ReplayStopped: the broker or the worker does not answer; what was applied is applied.
        DBAPIError: Postgres failed; as above.
    """
    if not answers(app, 3.0):
        raise ReplayStopped(NOBODY)
    flight = Flight(stage, app, tally, complain)
    batches = stage.prepared(found)
    pause = threading.Event()
    while not (stop.is_set() and flight.is_over):
        if not stop.is_set():
            advance(_fill(flight, batches))
            flight.launch()
            if flight.is_empty:
                return
        landed = flight.land()
        advance(landed)
        if not landed and not flight.is_over:
            advance(flight.ask_about_the_overdue())
            pause.wait(LOOK_SECONDS)


def _fill(flight: Flight, batches: Iterator[list[Event | BadLine | Applied]]) -> int:
    at_once = 0
    while flight.has_room and (batch := next(batches, None)) is not None:
        at_once += flight.board(batch)
    return at_once
