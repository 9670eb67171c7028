"""Many claimers over one line of runs, and the log of starts and stops that their handler writes."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from sqlalchemy import text

from db.engine import autocommit
from office_tasks.execution.execute import execute_next
from tests.execution.handlers import PATH, playing

_BUSY = text("SELECT count(*) FROM runs WHERE agent_profile_id = :agent AND status = 'claimed'")


class Stood(NamedTuple):
    """One entry of the log: a handler started or stopped, as the `place`th entry of all."""

    place: int
    starts: bool
    agent: str
    run_id: object
    busy: int


class Log:
    """Written by the handlers of all claimers; every start also asks Postgres how many the agent executes."""

    def __init__(self, engine):
        self._engine, self._lock, self._places, self.entries = engine, threading.Lock(), itertools.count(), []

    def handle(self, context):
        agent, run_id = context.agent.id, context.run.id
        self._write(agent, run_id, starts=True)
        with autocommit(self._engine) as connection:
            busy = connection.execute(_BUSY, {"agent": agent}).scalar_one()
        self._write(agent, run_id, starts=False, busy=busy)

    def _write(self, agent, run_id, *, starts, busy=0):
        with self._lock:
            self.entries.append(Stood(next(self._places), starts, agent, run_id, busy))


def execute_all(engines, log, is_left):
    """Let one claimer for each engine execute until `is_left()` is false; return how each execution ended."""

    def work(engine):
        done = []
        while (over := execute_next(engine, PATH)) or is_left():
            done += [over.result] if over else []
        return done

    with playing(log.handle), ThreadPoolExecutor(len(engines)) as threads:
        return [result for done in threads.map(work, engines) for result in done]


def most_at_once(entries):
    """Return for each agent how many of its handlers ran at one time, at the most."""
    running, most = {}, {}
    for entry in sorted(entries):
        running[entry.agent] = running.get(entry.agent, 0) + (1 if entry.starts else -1)
        most[entry.agent] = max(most.get(entry.agent, 0), running[entry.agent])
    return most
