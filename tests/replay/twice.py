"""A history delivered twice: who delivers what, by hand or through a broker, and what it leaves."""

from __future__ import annotations

import base64
import json
import threading
import zlib
from collections import defaultdict, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from celery import Celery
from redis import Redis
from sqlalchemy import Engine

from office_tasks.configuration import configuration
from office_tasks.replay import via_celery
from office_tasks.replay.events import BadLine, Event, events
from office_tasks.replay.lanes import far_lanes
from office_tasks.replay.stage import Stage
from office_tasks.replay.tally import Tally
from office_tasks.settings import Settings
from tests.replay.conftest import rows

SENDERS = 4
ANSWERS = "answers"
# So few events at a time keep two senders abreast.
ABREAST = 4
# So many second copies are held back at any time.
LATE = 20

# What a history leaves, without what no two replays share: the ids of runs.
LEFT = {
    "runs": """
        SELECT idempotency_key, agent_profile_id, task_id, requested_at, reason, payload, coalesced_count
        FROM runs ORDER BY idempotency_key""",
    "wakes": """
        SELECT w.id, w.mutation_id, w.agent_profile_id, w.key, w.payload, w.state, w.outcome, w.gate, w.observed,
               w.refusal, w.requested_at, w.decided_at, r.idempotency_key
        FROM wakes w LEFT JOIN runs r ON r.id = w.run_id ORDER BY w.id""",
    "mutations": """
        SELECT id, kind, task_id, previous_runner_id, generation, actor_type, actor_id, committed_at, settled_at
        FROM mutations ORDER BY id""",
    "events": "SELECT mutation_id, task_id, type, changed, created_at FROM events ORDER BY mutation_id, type",
    "tasks": "SELECT id, assignment_generation FROM tasks ORDER BY id",
}


def left(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """Return everything that a history left, table by table."""
    return {table: rows(engine, query) for table, query in LEFT.items()}


def senders_of(event: Event, *, abreast: bool = False) -> tuple[int, int]:
    """Return which two deliver the events of this task.

    Any two share some tasks, and so come to the same event at different times; abreast, two share all of theirs, and
    come to the same event at the same time.
    """
    number = zlib.crc32(event.task_id.encode()) % (SENDERS * (SENDERS - 1))
    first, distance = number % SENDERS, 1 + number // SENDERS
    return first, first ^ 1 if abreast else (first + distance) % SENDERS


def deliver_by_hand(stage: Stage, file: Path) -> dict[int, list[list[str]]]:
    """Have four processes apply every event twice at its instant; return what each delivery of a line came to.

    Each goes through its share in the order of the file and waits for nobody until the share is done: whichever of a
    task's two senders is ahead delivers its events first, and the other comes at the same moment or events later.
    """
    found = defaultdict(list)
    with far_lanes(stage, SENDERS, "ERROR") as lanes:
        for turn, batch in enumerate(stage.prepared(events(file))):
            abreast = turn % 2 == 0
            for some in _steps(batch, ABREAST if abreast else len(batch)):
                for number, lane in enumerate(lanes):
                    lane.give([event for event in some if number in senders_of(event, abreast=abreast)])
                for done in (done for lane in lanes for done in lane.collect()):
                    assert not isinstance(done, BadLine), done
                    found[done[0].number].append(done[1])
    return found


def _steps(batch: list[Event], size: int) -> list[list[Event]]:
    return [batch[start : start + size] for start in range(0, len(batch), size)]


class Twice(Celery):
    """Sends each message twice: at once, or the second later, by whichever sender of the crew comes to it."""

    def __init__(self, settings: Settings, held: deque[dict[str, Any]]) -> None:
        super().__init__("twice", set_as_current=False)
        self.conf.update(configuration(settings))
        self._held = held
        # Every delivery tells its own answer to a queue; the result backend keeps only the first success of an id.
        self._link = self.signature("answered", queue=ANSWERS, ignore_result=True)

    def send_task(self, name: str, **options: Any) -> Any:
        options = {"name": name, "link": self._link, **options}
        sent = super().send_task(**options)
        own = {field: options.pop(field) for field in ("producer", "retry") if field in options}
        self._held.append(options)
        if zlib.crc32(options["task_id"].encode()) % 2:
            super().send_task(**self._held.pop(), **own)
        elif len(self._held) > LATE:
            super().send_task(**self._held.popleft(), **own)
        return sent

    def send_held(self) -> None:
        while self._held:
            super().send_task(**self._held.popleft())


def deliver_by_broker(stage: Stage, file: Path, settings: Settings) -> Tally:
    """Have four threads send every event twice, each task's in order; return what became of the first answers."""
    held: deque[dict[str, Any]] = deque()
    crew = [Twice(settings, held) for _ in range(SENDERS)]
    tallies = [Tally() for _ in crew]
    with ThreadPoolExecutor(SENDERS) as pool:
        list(pool.map(partial(_send, stage, file), range(SENDERS), crew, tallies))
    crew[0].send_held()
    for app in crew:
        app.close()
    total = Tally()
    for tally in tallies:
        total.counts += tally.counts
    return total


def _send(stage: Stage, file: Path, number: int, app: Twice, tally: Tally) -> None:
    own = Stage(stage.engine, stage.identity)
    share = (event for event in events(file) if senders_of(event)[0] == number)
    via_celery.run(own, app, share, tally, complain=_refuse, advance=int, stop=threading.Event())


def _refuse(line: BadLine) -> None:
    raise AssertionError(line)


def answers(redis: Redis) -> dict[str, list[dict[str, Any]]]:
    """Return what every delivery answered, by the mutation."""
    found = defaultdict(list)
    for raw in redis.lrange(ANSWERS, 0, -1):
        (result,), *_ = json.loads(base64.b64decode(json.loads(raw)["body"]))
        found[result["mutation_id"]].append(result)
    return found


def generations(stage: Stage, file: Path) -> dict[str, int]:
    """Return what every event's mutation must have committed: 1..n along its task, 0 for a creation for nobody."""
    last: dict[str, int] = defaultdict(int)
    found = {}
    for event in _events(file):
        last[event.task_id] += event.kind == "assign" or event.assignee_id != ""
        found[stage.mutation_id(event)] = last[event.task_id]
    return found


def owing(stage: Stage, file: Path) -> list[str]:
    """Return the mutations of the events that owe a wake, sorted."""
    return sorted(stage.mutation_id(event) for event in _events(file) if event.assignee_id)


def _events(file: Path) -> Iterator[Event]:
    for event in events(file):
        assert isinstance(event, Event), event
        yield event
