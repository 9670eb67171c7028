"""A back-test: each event at its own instant.

A gate looks at one task, and otherwise at what no replay changes. So tasks do not see each other: events of different
tasks may run side by side as long as those of one task keep the order of the file, and the outcomes are the same.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from office_tasks.replay.events import BadLine, Event
from office_tasks.replay.lanes import Done, Item, Lane, Near, far_lanes
from office_tasks.replay.stage import Applied, Stage
from office_tasks.replay.tally import Tally

# Each keeps a core busy together with its Postgres backend; starting one takes as long as some hundred events.
LANES: Final = 2
WORTH_IT: Final = 2_000

Complain = Callable[[BadLine], None]
Advance = Callable[[int], None]


def run(
    stage: Stage,
    found: Iterable[Event | BadLine],
    tally: Tally,
    *,
    expected: int,
    complain: Complain,
    advance: Advance,
    stop: threading.Event,
    log_level: str = "ERROR",
) -> None:
    """Apply the events until they end or `stop` is set.

    Args:
        stage: where.
        found: the lines of the file.
        tally: what counts them.
        expected: about how many there are.
        complain: is told of each line that was not applied.
        advance: is told how many were accounted for.
        stop: ends the replay after the events that are under way.
        log_level: of the processes beside this one.

    Raises:
        ReplayStopped: a process beside this one failed; what was applied is applied.
        DBAPIError: Postgres failed; as above.
    """
    with far_lanes(stage, LANES if expected >= WORTH_IT else 0, log_level) as far:
        lanes: Sequence[Lane] = far or [Near(stage)]
        for batch in stage.prepared(found):
            if stop.is_set():
                break
            advance(_count_at_once(batch, tally, complain))
            for lane, share in zip(lanes, _shares(batch, len(lanes)), strict=True):
                advance(_count(lane.collect(), tally, complain))
                lane.give(share)
        for lane in lanes:
            advance(_count(lane.collect(), tally, complain))


def _count_at_once(batch: Sequence[Event | BadLine | Applied], tally: Tally, complain: Complain) -> int:
    """Count what needs nobody to apply it: bad lines, and what was applied and settled before."""
    bad = [item for item in batch if isinstance(item, BadLine)]
    settled = sum(isinstance(item, Applied) and item.settled for item in batch)
    for line in bad:
        complain(line)
    tally.invalid(len(bad))
    tally.already_applied(settled)
    return len(bad) + settled


def _shares(batch: Sequence[Event | BadLine | Applied], number: int) -> list[list[Item]]:
    """Deal the rest so that the events of one task go to one lane, in order."""
    shares: list[list[Item]] = [[] for _ in range(number)]
    for item in batch:
        if isinstance(item, Event):
            shares[_lane_of(item, number)].append(item)
        elif isinstance(item, Applied) and not item.settled:
            shares[_lane_of(item.event, number)].append(item)
    return shares


def _lane_of(event: Event, number: int) -> int:
    return zlib.crc32(event.task_id.encode()) % number


def _count(done: Sequence[Done], tally: Tally, complain: Complain) -> int:
    for what in done:
        if isinstance(what, BadLine):
            complain(what)
            tally.invalid()
        elif isinstance(what[0], Applied):
            tally.already_applied()
        else:
            tally.applied(what[0], what[1])
    return len(done)
