"""Races of real processes and threads, accounted for exactly."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from office_tasks import admin, app, assign_task, create_task
from office_tasks.admission import ASSIGNMENT_ALLOWANCE
from office_tasks.office import Office
from office_tasks.settings import Settings
from tests.faults.processes import assign_once, deliver, race
from tests.support import T0, after


def test_eight_processes_at_the_edge_of_the_allowance(board, database_url, moved):
    """C07, ADM-5.7: at 4 of 5, 8 at once: 1 to 8 are queued, the others rate-limited; nobody is refused too early."""
    agents = [f"agent-{n}" for n in range(8)]
    for agent in agents:
        admin.create_agent(board.engine, "acme", agent)
    for n in range(1, ASSIGNMENT_ALLOWANCE):
        board.assigned(after(minutes=n - ASSIGNMENT_ALLOWANCE), key=f"before-{n}")

    answers = race(8, assign_once, database_url, agents)

    outcomes = Counter(str(answer.outcome) for answer in answers)
    assert set(outcomes) <= {"queued", "rate_limited"}
    assert 1 <= outcomes["queued"] <= 8
    assert sum(outcomes.values()) == 8
    assert board.count("runs") == ASSIGNMENT_ALLOWANCE - 1 + outcomes["queued"]
    assert all(answer.observed >= ASSIGNMENT_ALLOWANCE for answer in answers if answer.outcome == "rate_limited")
    assert board.assigned(agent="bob", key="one-more").outcome == "rate_limited"


def test_a_thousand_deliveries_of_one_key_make_one_run(board, database_url):
    """ADM-6.3, OPS-5: 8 processes of 5 threads ask 1,000 times for one occurrence: one run, no error."""
    answers = [answer for answered in race(8, deliver, database_url, 125, 5) for answer in answered]

    outcomes = Counter(str(answer.outcome) for answer in answers)
    assert len(answers) == sum(outcomes.values()) == 1_000
    assert outcomes["queued"] == 1
    assert set(outcomes) <= {"queued", "deduped", "coalesced"}
    (run,) = board.runs()
    assert run["idempotency_key"] == "task_assigned:T1:ana:1"
    assert run["coalesced_count"] == 1 + outcomes["coalesced"]
    assert board.count("wakes") == 1_000
    assert {answer.run_id for answer in answers} == {run["id"]}


@pytest.fixture
def busy_office(make_test_engine, database_url):
    """The app's office with room for as many threads as the test has."""
    before = app.__dict__.pop("office", None)
    app.office = Office(Settings(database_url=database_url), make_test_engine(pool_size=16))
    yield app.office
    del app.office
    if before is not None:
        app.office = before


@pytest.mark.usefixtures("busy_office")
def test_two_hundred_assignments_of_one_task_at_once(board):
    """OPS-5, PRO-2.4, PRO-2.1: 200 agent-initiated ones from 16 threads: generations 1..200, each accounted for."""
    create_task("acme", "a task", task_id="T1", step_id="start")

    with ThreadPoolExecutor(16) as threads:
        results = list(threads.map(lambda n: assign_task("T1", ("ana", "bob")[n % 2], "bob"), range(200)))

    assert sorted(result["generation"] for result in results) == list(range(1, 201))
    assert board.rows("SELECT assignment_generation AS n FROM tasks")[0]["n"] == 200
    wakes = [wake for result in results for wake in result["wakes"]]
    outcomes = Counter(wake["outcome"] for wake in wakes)
    assert len(wakes) == 200
    assert {wake["state"] for wake in wakes} == {"decided"}
    runs = board.runs()
    assert outcomes["queued"] == len(runs)
    assert not outcomes["rate_limited"] or len(runs) >= ASSIGNMENT_ALLOWANCE
    assert outcomes["queued"] + outcomes["coalesced"] == sum(run["coalesced_count"] for run in runs)
    assert sum(outcomes[name] for name in ("queued", "coalesced", "rate_limited")) == 200
    keys = [row["key"] for row in board.rows("SELECT key FROM wakes")]
    assert len(set(keys)) == 200
    assert board.rows("SELECT count(*) AS n FROM mutations WHERE settled_at IS NULL")[0]["n"] == 0
    seats = board.rows("SELECT agent_profile_id FROM seats WHERE task_id = 'T1' AND role = 'runner'")
    last = max(results, key=lambda result: result["generation"])
    assert [seat["agent_profile_id"] for seat in seats] == [last["assignee_id"]], "the last committed one stands"


def test_nobody_is_refused_below_the_allowance(board, database_url):
    """ADM-5.7: with the allowance untouched, 5 processes at once are all admitted: no refusal below the allowance."""
    agents = [f"agent-{n}" for n in range(ASSIGNMENT_ALLOWANCE)]
    for agent in agents:
        admin.create_agent(board.engine, "acme", agent)

    answers = race(ASSIGNMENT_ALLOWANCE, assign_once, database_url, agents)

    assert {str(answer.outcome) for answer in answers} == {"queued"}
    assert {row["requested_at"] for row in board.runs()} == {T0}
