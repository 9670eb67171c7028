"""P6: from `.delay()` to the handler's first instruction on an idle system, beside a no-op's round trip."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

from bench.apps.handler import BEGAN
from bench.database import Office, office
from bench.interleave import Samples
from bench.result import Result
from bench.scale import Scale
from bench.workers import ALONE, Caller, caller, office_worker, settings
from office_tasks.devstack import Postgres, Redis

HANDLER = {"OFFICE_RUN_HANDLER": "bench.apps.handler:tell"}
QUEUES = {"admit@bench": "admission,recovery", "run@bench": "execution"}
PATIENCE_SECONDS = 60
WARM_UP = 20

START, ROUND_TRIP = "handler start", "no-op round trip"


def starts(server: Postgres, scale: Scale) -> Iterator[Result]:
    """P6, with the two workers that the README names; one call at a time, so that nothing waits but for us."""
    with office(server) as made, Redis() as broker, caller(broker) as sender, ExitStack() as workers:
        env = {**settings(made, broker), **HANDLER}
        for name, queues in QUEUES.items():
            words = ["-Q", queues, *ALONE]
            workers.enter_context(office_worker(name, "bench.apps.ours", words, env, broker))
        _round(sender, made, min(WARM_UP, scale.starts))
        samples = Samples([_round(sender, made, scale.starts) for _ in range(scale.rounds)])
    seen = Result.of("P6", "idle", samples.ratio(START, ROUND_TRIP), 2.0)
    p99 = {f"p99 {name}, us": round(_p99(samples, name) * 1e6) for name in (START, ROUND_TRIP)}
    yield replace(seen, detail={**seen.detail, **p99})


def _round(sender: Caller, made: Office, times: int) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {START: [], ROUND_TRIP: []}
    for _ in range(times):
        taken[START].append(_start(sender, made))
        taken[ROUND_TRIP].append(_round_trip(sender))
    return taken


def _start(sender: Caller, made: Office) -> float:
    """Return the seconds from the call to the handler's start; both read the machine's one monotonic clock."""
    begun = time.monotonic_ns()
    sent = sender.queue_run.delay(made.next_agent(), "manual_resume", {}, f"bench:{begun}")
    told = sender.redis.blpop([BEGAN], PATIENCE_SECONDS)
    if told is None or sent.get(timeout=PATIENCE_SECONDS)["outcome"] != "queued":
        raise AssertionError("the wake started no handler")
    return (int(told[1]) - begun) / 1e9


def _round_trip(sender: Caller) -> float:
    begun = time.monotonic_ns()
    sender.noop.delay().get(timeout=PATIENCE_SECONDS)
    return (time.monotonic_ns() - begun) / 1e9


def _p99(samples: Samples, name: str) -> float:
    every = sorted(seconds for done in samples.rounds for seconds in done[name])
    return every[min(len(every) - 1, len(every) * 99 // 100)]
