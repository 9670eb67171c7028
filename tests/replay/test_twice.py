"""A history of which every message comes twice, from four senders at once, leaves what it leaves delivered once.

PRO-6.1, PRO-1.1, ADM-6.4. On the sample and the beginning of the real file; with OFFICE_WHOLE_HISTORY=1 on all of it.
"""

from __future__ import annotations

import gzip
import os
from itertools import islice

import pytest

from db.engine import make_engine
from office_tasks.replay import via_celery
from office_tasks.replay.lines import survey
from office_tasks.replay.stage import opened
from office_tasks.settings import Settings
from tests.databases import plain
from tests.nodes.waiting import until
from tests.replay.conftest import NO_REAL, REAL, SAMPLE, assert_reconciles, rows
from tests.replay.twice import ANSWERS, SENDERS, answers, deliver_by_broker, deliver_by_hand, generations, left, owing

WHOLE = os.environ.get("OFFICE_WHOLE_HISTORY") == "1"
BEGINNING = 750
PATIENCE = 1_800 if WHOLE else 120

pytestmark = pytest.mark.timeout(2 * PATIENCE)


@pytest.fixture(params=["sample", "real"])
def history(request, tmp_path):
    """The file whose events are delivered."""
    if request.param == "sample":
        return SAMPLE
    if not REAL.exists():
        pytest.skip(NO_REAL)
    if WHOLE:
        return REAL
    beginning = tmp_path / "beginning.csv"
    with gzip.open(REAL, "rt") as source:
        beginning.write_text("".join(islice(source, 1 + BEGINNING)))
    return beginning


@pytest.fixture
def other_engine(make_database, template):
    """An engine on one more database."""
    url = make_database(template)
    engine = make_engine(plain(url), pool_size=4)
    yield engine
    engine.dispose()
    make_database.drop(url)


def test_by_hand_it_leaves_exactly_what_it_leaves_once(history, play, engine, other_engine):
    """Each event at its instant, from four processes: the runs, the wakes' outcomes, and all else are the same."""
    play(history)
    with opened(other_engine, survey(history).digest, allow_shared=False) as stage:
        told = deliver_by_hand(stage, history)
    once, twice = left(engine), left(other_engine)
    for table, found in once.items():
        assert twice[table] == found, table
    outcomes = dict(rows(engine, "SELECT mutation_id, outcome FROM wakes"))
    for number, deliveries in told.items():
        mine = outcomes.get(stage.identity.mutation_id(number))
        assert deliveries == [[mine] if mine else []] * 2, number
    assert len(told) == len(once["mutations"])
    print(f"{2 * len(told)} deliveries of {len(told)} events, {len(twice['runs'])} runs")


@pytest.fixture
def in_step(monkeypatch):
    """Let a sender have few messages under way: a queue that takes 10 s to work off makes it ask what is the matter."""
    monkeypatch.setattr(via_celery, "IN_FLIGHT", 160 // SENDERS)


@pytest.mark.usefixtures("in_step")
def test_through_the_broker_nothing_happens_twice(history, start_worker, broker, office_env, make_test_engine):
    """As messages, at the present instant: one mutation an event, one wake where one is owed, one answer to both."""
    start_worker(concurrency=2)
    engine, redis = make_test_engine(pool_size=2 * SENDERS), broker.container.client
    settings = Settings(broker_url=office_env["OFFICE_BROKER_URL"], result_backend=office_env["OFFICE_RESULT_BACKEND"])
    with opened(engine, survey(history).digest, allow_shared=False) as stage:
        tally = deliver_by_broker(stage, history, settings)
        expected, woken = generations(stage, history), owing(stage, history)
    until(lambda: redis.llen("admission") + redis.hlen("unacked") == 0, PATIENCE, "every delivery is done")
    assert dict(rows(engine, "SELECT id, generation FROM mutations")) == expected
    assert [row[0] for row in rows(engine, "SELECT mutation_id FROM wakes ORDER BY 1")] == woken
    assert rows(engine, "SELECT id FROM wakes WHERE state <> 'decided'") == []
    assert_reconciles(tally.summary(), engine)
    assert rows(engine, "SELECT id FROM wakes WHERE outcome = 'queued' ORDER BY 1") == rows(
        engine, "SELECT w.id FROM runs JOIN wakes w ON w.run_id = runs.id AND w.key = runs.idempotency_key ORDER BY 1"
    )
    stored, told = dict(rows(engine, "SELECT id, result FROM mutations")), answers(redis)
    assert told.keys() == stored.keys()
    assert redis.llen(ANSWERS) >= 2 * len(stored)
    for mutation_id, found in told.items():
        # A message that is overdue is sent once more, twice again.
        assert len(found) >= 2, mutation_id
        assert all(answer == stored[mutation_id] for answer in found), mutation_id
    print(f"{redis.llen(ANSWERS)} deliveries of {len(stored)} events, {tally.counts['queued']} runs")
