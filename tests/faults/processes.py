"""Races between real processes: each opens its own engine, all start at one barrier, and each returns what it got."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from db import migrate
from db.engine import make_engine
from office_tasks.admission import Answer, admit, wake
from tests.support import T0

# A server process that has imported everything forks the racers: real processes, without their start-up time.
_context = multiprocessing.get_context("forkserver")


def race(count: int, work: Callable[..., Any], *args: Any) -> list[Any]:
    """Run `work(number, start, *args)` in `count` processes; `start()` waits for all. Return what each returned."""
    _context.set_forkserver_preload(["tests.faults.processes"])
    barrier = _context.Barrier(count)
    pipes = [_context.Pipe(duplex=False) for _ in range(count)]
    racers = [
        _context.Process(target=_run, args=(work, number, barrier, pipe[1], args), daemon=True)
        for number, pipe in enumerate(pipes)
    ]
    try:
        for racer in racers:
            racer.start()
        return [_received(reader) for reader, _ in pipes]
    finally:
        for racer in racers:
            racer.kill() if racer.exitcode is None and not _ended(racer) else None
        for reader, writer in pipes:
            reader.close()
            writer.close()


def _ended(racer) -> bool:
    racer.join(timeout=10)
    return racer.exitcode is not None


def _received(reader) -> Any:
    if not reader.poll(60):
        raise TimeoutError("a racer did not answer within 60 s")
    result = reader.recv()
    if isinstance(result, BaseException):
        raise result
    return result


def _run(work, number, barrier, pipe, args) -> None:
    try:
        result = work(number, partial(barrier.wait, 60), *args)
    except Exception as error:  # noqa: BLE001 - the parent must hear of it
        pipe.send(RuntimeError(f"racer {number}: {error!r}"))
    else:
        pipe.send(result)


def assign_once(number: int, start: Callable[[], Any], url: str, agents: list[str]) -> Answer:
    """Ask once for an agent-initiated assignment of T1: own agent, own key."""
    engine = make_engine(url)
    asked = wake(
        wake_id=f"racer-{number}",
        agent_profile_id=agents[number],
        reason="task_assigned",
        payload={"task_id": "T1", "actor_type": "agent", "actor_id": "boss"},
        key=f"racer-{number}",
        producer="test",
    )
    with engine.connect():
        pass
    start()
    answer = admit(engine, asked, instant=T0)
    engine.dispose()
    return answer


def deliver(number: int, start: Callable[[], Any], url: str, times: int, threads: int) -> list[Answer]:
    """Ask `times` times for one and the same occurrence, each time in a message of its own, from several threads."""
    engine = make_engine(url, pool_size=threads)
    wakes = [
        wake(
            wake_id=f"message-{number}-{n}",
            agent_profile_id="ana",
            reason="task_assigned",
            payload={"task_id": "T1", "actor_type": "user"},
            key="task_assigned:T1:ana:1",
            producer="test",
        )
        for n in range(times)
    ]
    with ThreadPoolExecutor(threads) as pool:
        start()
        answers = list(pool.map(partial(admit, engine, instant=T0), wakes))
    engine.dispose()
    return answers


def upgrade(_number: int, start: Callable[[], Any], url: str) -> bool:
    """Upgrade a database; return whether anything is pending afterwards."""
    engine = make_engine(url)
    start()
    migrate.upgrade(engine)
    pending = migrate.pending(engine)
    engine.dispose()
    return pending
