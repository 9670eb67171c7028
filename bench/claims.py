"""P8: runs claimed and ended a second by several claimers at once, beside a dequeue that knows no agents."""

from __future__ import annotations

import multiprocessing
import time
import uuid
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Barrier

from sqlalchemy import Engine, text

from bench.database import AGENTS, Office, office
from bench.result import Result
from bench.scale import Scale
from db import endings
from db.endings import Ending
from db.engine import make_engine
from office_tasks.devstack import Postgres
from office_tasks.execution.begin import Begun, begin

CLAIMERS = 8

_FILL = """
INSERT INTO runs (id, agent_profile_id, reason, payload, requested_at)
SELECT gen_random_uuid(), 'agent-' || n % {agents} + 1, 'manual_resume', '{{}}',
       now() - interval '1 day' + n * interval '1 ms'
FROM generate_series(1, {queued}) n"""

# The usual queue on Postgres: the oldest that nobody else is taking, whoever it is for.
_TAKE = text("""
    UPDATE runs SET status = 'claimed', attempt = attempt + 1, claimed_at = office_now(), lease_token = :token,
           lease_expires_at = office_now() + interval '60 s'
    WHERE id = (SELECT id FROM runs WHERE status = 'queued' ORDER BY requested_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id""")

Work = Callable[[Engine], None]


def claim(engine: Engine) -> None:
    """Claim the next run that may start, and finish it."""
    begun = begin(engine)
    match begun:
        case Begun(run):
            _finish(engine, run.id, run.lease_token)
        case _:
            raise AssertionError("nothing left to claim")


def dequeue(engine: Engine) -> None:
    """Take the next run, and finish it."""
    token = uuid.uuid4()
    with engine.begin() as connection:
        run_id = connection.execute(_TAKE, {"token": token}).scalar_one()
    _finish(engine, run_id, token)


def rates(server: Postgres, scale: Scale) -> Iterator[Result]:
    """P8, both ways in turn on one database; only reported."""
    with office(server) as made:
        made.run(_FILL.format(queued=scale.queued, agents=AGENTS))
        made.analyze()
        seen: dict[str, list[float]] = {"claim": [], "dequeue": []}
        for _ in range(scale.rounds):
            for work in (claim, dequeue):
                seen[work.__name__].append(_rate(made, work, scale.claims))
    ours, plain = (sorted(seen[name])[scale.rounds // 2] for name in ("claim", "dequeue"))
    detail = {f"{name}s and ends a second": [round(each) for each in found] for name, found in seen.items()}
    yield Result("P8", f"{CLAIMERS} claimers, {scale.queued:,} queued", ours / plain, None, detail=detail)


def _rate(made: Office, work: Work, each: int) -> float:
    """Return how many a second all claimers together did, from when the last of them was ready."""
    fork = multiprocessing.get_context("fork")
    ready = fork.Barrier(CLAIMERS + 1)
    url = made.engine.url.render_as_string(hide_password=False)
    claimers = [fork.Process(target=_repeat, args=(url, work, each, ready)) for _ in range(CLAIMERS)]
    for claimer in claimers:
        claimer.start()
    ready.wait()
    begun = time.perf_counter()
    for claimer in claimers:
        claimer.join()
    if any(claimer.exitcode for claimer in claimers):
        raise AssertionError("a claimer failed")
    return CLAIMERS * each / (time.perf_counter() - begun)


def _repeat(url: str, work: Work, times: int, ready: Barrier) -> None:
    engine = make_engine(url, application_name="bench")
    engine.connect().close()
    ready.wait()
    for _ in range(times):
        work(engine)
    engine.dispose()


def _finish(engine: Engine, run_id: uuid.UUID, token: uuid.UUID) -> None:
    with engine.begin() as connection:
        endings.end(connection, run_id, token, Ending("finish", result="null"))
