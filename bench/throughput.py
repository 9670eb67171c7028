"""P5: how many wakes a second a worker admits, beside a Celery task that does nothing, in the same worker."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial

from bench.database import Office, office
from bench.result import Result
from bench.scale import Scale
from bench.workers import ALONE, Caller, caller, office_worker, settings, until
from db.engine import autocommit
from office_tasks.devstack import Postgres, Redis

WORKER = "p5@bench"
QUEUE = "admission"
POOL = ("-P", "prefork", "-c", "2")

_QUEUED = (
    "SELECT count(*) FROM wakes JOIN runs ON runs.id = wakes.run_id WHERE outcome = 'queued' AND coalesced_count = 1"
)

Send = Callable[[], object]


def rates(server: Postgres, scale: Scale) -> Iterator[Result]:
    """P5: batches in turn, each put on the queue while nobody consumes it, then timed until all is acknowledged."""
    with office(server) as made, Redis() as broker, caller(broker, results=False) as sender:
        sends: dict[str, Send] = {"queue_run": partial(sender.wake, made), "no-op": sender.noop.delay}
        words = [*POOL, "-Q", QUEUE, *ALONE]
        with office_worker(WORKER, "bench.apps.ours", words, settings(made, broker), broker):
            seen = _measure(sender, sends, scale)
        _check_admitted(made, (scale.rounds + 1) * scale.batch)
    yield _result(seen)


def _measure(sender: Caller, sends: dict[str, Send], scale: Scale) -> dict[str, list[float]]:
    for send in sends.values():
        _rate(sender, send, scale.batch)
    seen: dict[str, list[float]] = {name: [] for name in sends}
    order = list(sends)
    for _ in range(scale.rounds):
        for name in order:
            seen[name].append(_rate(sender, sends[name], scale.batch))
        order.reverse()
    return seen


def _rate(sender: Caller, send: Send, batch: int) -> float:
    """Return messages a second, from when the worker has taken the first until it has acknowledged the last."""
    control = sender.app.control
    control.cancel_consumer(QUEUE, destination=[WORKER], reply=True)
    for _ in range(batch):
        send()
    if _left(sender) != batch:
        raise AssertionError("the worker consumes what it was not to")
    control.add_consumer(QUEUE, destination=[WORKER])
    until(lambda: _left(sender) < batch, "the first message is done")
    begun, left = time.perf_counter(), _left(sender)
    until(lambda: not _left(sender), "all messages are done")
    return left / (time.perf_counter() - begun)


def _left(sender: Caller) -> int:
    """Return how many messages wait or are not acknowledged, as the broker counts them in one instant."""
    waiting, unacknowledged = sender.redis.pipeline().llen(QUEUE).hlen("unacked").execute()
    return int(waiting + unacknowledged)


def _check_admitted(made: Office, sent: int) -> None:
    with autocommit(made.engine) as connection:
        queued = connection.exec_driver_sql(_QUEUED).scalar_one()
    if queued != sent:
        raise AssertionError(f"{sent} wakes were sent and {queued} queued a run of their own")


def _result(seen: dict[str, list[float]]) -> Result:
    rounds = [ours / plain for ours, plain in zip(seen["queue_run"], seen["no-op"], strict=True)]
    detail = {f"{name}, a second": [round(each) for each in found] for name, found in seen.items()}
    ratio = statistics.median(seen["queue_run"]) / statistics.median(seen["no-op"])
    more = {"median of rounds": round(statistics.median(rounds), 3), "rounds": [round(each, 3) for each in rounds]}
    return Result("P5", " ".join(POOL), ratio, 0.6, at_most=False, detail={**detail, **more})
