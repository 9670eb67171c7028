"""The claim: whose turn it is, who has to wait, and that two claimers never disagree about either (REC-2.2)."""

from __future__ import annotations

import uuid
from contextlib import suppress

import pytest
from sqlalchemy import text

from db import claims
from db.board import lock_task
from db.claims import Overtaken
from db.engine import autocommit
from db.leases import GRACE
from office_tasks import admin
from office_tasks.execution.begin import begin
from office_tasks.execution.end import Over
from office_tasks.execution.execute import execute_next
from office_tasks.producers.assignments import assign_task
from tests.db.plans import statements
from tests.execution.handlers import PATH, playing
from tests.faults.waits import holding, in_background, until_blocked
from tests.support import T0, after

LOCK_AGENT = "SELECT 1 FROM agents WHERE id = :id FOR NO KEY UPDATE"


def limit(board, most, agent="ana"):
    board.execute("UPDATE agents SET max_concurrent_sessions = :most WHERE id = :id", most=most, id=agent)


def all_claimed(claim):
    """Claim until nothing may start any more; return the runs in the order in which they were claimed."""
    taken = []
    while run := claim():
        taken.append(run.id)
    return taken


def test_the_oldest_first_over_all_agents(board, queue, claim):
    """REC-2.2: by requested_at, whoever's it is; at one instant by id."""
    for agent in ("ana", "bob"):
        limit(board, 9, agent)
    ids = sorted(uuid.uuid4() for _ in range(4))
    late = queue(after(minutes=2), agent="ana")
    same = [queue(after(minutes=1), agent=("ana", "bob")[n % 2], run_id=ids[n]) for n in (3, 1, 0, 2)]
    first = queue(T0, agent="bob")
    assert set(same) == set(ids)
    assert all_claimed(claim) == [first, *ids, late]


def test_the_oldest_first_of_each_agent(board, queue, claim):
    """REC-2.2: an agent that is busy lets others pass, and keeps its own order."""
    runs = {agent: [queue(after(minutes=n), agent=agent) for n in range(3)] for agent in ("ana", "bob")}
    for n in range(3):
        assert all_claimed(claim) == [runs["ana"][n], runs["bob"][n]]
        for agent in runs:
            board.set_status(runs[agent][n], "finished")


def test_what_a_claim_writes(board, queue, claim, time):
    """REC-2.2, REC-2.8: the attempt is counted, the lease is a minute, the retry time is gone, the request stands."""
    run_id = queue(T0, retry_at=after(minutes=5), payload={"n": 1}, key="K")
    time.move(minutes=5)
    before, run = board.run(run_id), claim()
    row = board.run(run_id)
    assert {name for name in row if row[name] != before[name]} == {
        "status", "attempt", "scheduled_retry_at", "claimed_at", "lease_token", "lease_expires_at",
    }  # fmt: skip
    assert (row["status"], row["attempt"], row["claimed_at"]) == ("claimed", 1, after(minutes=5))
    assert (row["lease_token"], row["lease_expires_at"]) == (run.lease_token, after(minutes=6))
    assert run._asdict() == {name: row[name] for name in run._fields}


WAITS = {
    "paused": "UPDATE agents SET status = 'paused' WHERE id = 'ana'",
    "stopped": "UPDATE agents SET status = 'stopped' WHERE id = 'ana'",
    "pending": "UPDATE agents SET status = 'pending_approval' WHERE id = 'ana'",
    "workspace paused": "INSERT INTO pauses (workspace_id) VALUES ('own')",
    "workspace missing": "UPDATE agents SET workspace_id = 'nowhere' WHERE id = 'ana'",
    "no workspace": "UPDATE agents SET workspace_id = NULL WHERE id = 'ana'",
    "replay": "UPDATE workspaces SET is_replay = true WHERE id = 'own'",
    "agent gone": "UPDATE runs SET agent_profile_id = 'nobody' WHERE agent_profile_id = 'ana'",
    "retry to come": "UPDATE runs SET scheduled_retry_at = '2026-03-02T09:00:00.000001Z' "
    "WHERE agent_profile_id = 'ana'",
    "claimed": "UPDATE runs SET status = 'claimed', lease_token = gen_random_uuid(), lease_expires_at = now() "
    "WHERE agent_profile_id = 'ana'",
    "over": "UPDATE runs SET status = 'cancelled', finished_at = now() WHERE agent_profile_id = 'ana'",
}


@pytest.fixture
def own(board):
    """Agent ana in a workspace of her own, so that it can be paused alone."""
    admin.create_workspace(board.engine, "own", workflow_id="flow")
    board.execute("UPDATE agents SET workspace_id = 'own' WHERE id = 'ana'")


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("why", WAITS)
def test_who_may_not_start_waits_and_holds_back_nobody(board, queue, claim, untouched, why):
    """REC-2.2, REC-2.10: each ineligibility alone; the younger run of another agent is claimed meanwhile."""
    waiting, other = queue(T0, agent="ana"), queue(after(minutes=1), agent="bob")
    board.execute(WAITS[why])
    still = untouched("runs", waiting)
    assert all_claimed(claim) == [other]
    assert still()


@pytest.mark.usefixtures("own")
def test_a_resumed_workspace_goes_on(board, queue, claim):
    """REC-2.10: a pause that is over holds nobody."""
    run_id = queue()
    board.execute(WAITS["workspace paused"])
    assert claim() is None
    board.execute("UPDATE pauses SET resumed_at = now()")
    assert claim().id == run_id


def test_a_retry_whose_time_has_come_is_claimed_to_the_instant(board, queue, claim, time):
    """REC-2.2, REC-2.7: not a microsecond before; in its old place in the line."""
    limit(board, 3)
    retried, *younger = queue(T0, retry_at=after(minutes=5)), queue(after(minutes=1)), queue(after(minutes=2))
    time.move(minutes=5, microseconds=-1)
    assert claim().id == younger[0]
    time.move(minutes=5)
    assert all_claimed(claim) == [retried, younger[1]]


@pytest.mark.parametrize(("most", "at_once"), [(None, 1), (0, 1), (-1, 1), (1, 1), (3, 3), (9, 5)])
def test_an_agent_is_kept_to_its_limit(board, queue, claim, most, at_once):
    """REC-2.2: NULL or less than 1 means 1; a run that ends makes room for the next in line."""
    limit(board, most)
    runs = [queue(after(minutes=n)) for n in range(5)]
    assert all_claimed(claim) == runs[:at_once]
    board.set_status(runs[0], "finished")
    assert all_claimed(claim) == runs[at_once : at_once + 1]


def test_a_limit_lowered_while_runs_execute(board, queue, claim):
    """REC-2.2: those that execute go on; none is added before they are fewer than the new limit."""
    limit(board, 3)
    runs = [queue(after(minutes=n)) for n in range(6)]
    assert all_claimed(claim) == runs[:3]
    limit(board, 2)
    for ended, claimed in ((0, []), (1, runs[3:4]), (2, runs[4:5])):
        board.set_status(runs[ended], "failed")
        assert all_claimed(claim) == claimed


HEADS = ["agent paused", "agent at its limit", "retries to come", "all of it"]


@pytest.mark.parametrize("head", HEADS)
def test_a_long_line_of_those_who_wait_hides_nobody(board, queue, claim, virtual, head):
    """REC-2.2: 250 that may not start stand in front; the second look finds the one that may, and the oldest such."""
    many = {"agent paused": 0, "agent at its limit": 1, "retries to come": 2}
    for name, kind in many.items():
        if head in (name, "all of it"):
            _put_in_front(board, f"agent-{kind}", name)
    late, early = queue(after(hours=9), agent="ana"), queue(after(hours=8), agent="bob")
    with statements(virtual) as sent:
        assert claim().id == early
    assert len(sent) == 3
    assert claim().id == late
    assert claim() is None


def _put_in_front(board, agent, why):
    admin.create_agent(board.engine, "acme", agent, status="paused" if why == "agent paused" else "active")
    board.execute(
        "INSERT INTO runs (id, agent_profile_id, reason, payload, requested_at, scheduled_retry_at) "
        "SELECT gen_random_uuid(), :agent, 'r', '{}', CAST(:at AS timestamptz) + n * interval '1 s', "
        "CAST(:retry AS timestamptz) FROM generate_series(1, 250) n",
        agent=agent, at=T0, retry=after(days=1) if why == "retries to come" else None,
    )  # fmt: skip
    if why == "agent at its limit":
        board.set_status(board.rows("SELECT id FROM runs WHERE agent_profile_id = :a LIMIT 1", a=agent)[0]["id"],
                         "claimed")  # fmt: skip


def test_a_claim_costs_two_round_trips(queue, claim, virtual):
    """REC-2.6, R08: whose turn it is, and the taking; three looks when there is nothing."""
    queue()
    with statements(virtual) as sent:
        assert claim()
    assert len(sent) == 2
    with statements(virtual) as sent:
        assert claim() is None
    assert len(sent) == 3


@pytest.mark.parametrize(("task", "round_trips"), [(None, 4), ("T1", 7)])
def test_an_execution_costs_few_round_trips(queue, on_board, virtual, task, round_trips):
    """REC-2.6, R08: two to claim, what it is about, its session, its end, and the session's rest."""
    on_board("T1")
    queue(task=task)
    with statements(virtual) as sent, playing(lambda _: None):
        assert execute_next(virtual, PATH).result == "finished"
    assert len(sent) == round_trips


def test_a_run_that_another_holds_is_passed_over(board, queue, claim):
    """REC-2.2: whoever merges into it, or cancels it, has it; nobody waits for them."""
    first, second = queue(T0), queue(after(minutes=1))
    with holding(board.engine, "SELECT 1 FROM runs WHERE id = :id FOR UPDATE", id=first):
        assert claim().id == second


def test_an_agent_whose_only_run_another_holds_holds_back_nobody(board, queue, virtual):
    """REC-2.2: it stands first in line, and whoever merges into its run may take a while."""
    held = queue(T0, agent="ana")
    other = queue(after(minutes=1), agent="bob")
    with holding(board.engine, "SELECT 1 FROM runs WHERE id = :id FOR UPDATE", id=held):
        assert begin(virtual).run.id == other
        assert begin(virtual) is None
    assert begin(virtual).run.id == held


def test_an_agent_that_another_claimer_holds_is_passed_over(board, queue, claim):
    """REC-2.2: while others may start, nobody waits for a claimer."""
    queue(T0, agent="ana")
    other = queue(after(minutes=1), agent="bob")
    with holding(board.engine, LOCK_AGENT, id="ana"):
        assert claim().id == other


def test_an_agent_that_somebody_holds_for_long_holds_back_nobody(board, queue, virtual):
    """REC-2.2: not even when the first hundred in line are not due; it is looked at again later."""
    for n in range(101):
        board.execute(
            "UPDATE runs SET scheduled_retry_at = :later WHERE id = :id",
            id=queue(after(seconds=-n)),
            later=after(hours=1),
        )
    held, other = queue(after(minutes=1), agent="ana"), queue(after(minutes=2), agent="bob")
    with holding(board.engine, LOCK_AGENT, id="ana"):
        assert begin(virtual).run.id == other
        assert begin(virtual) is None
    assert begin(virtual).run.id == held


@pytest.mark.parametrize("commits", [True, False], ids=["committed", "undone"])
def test_a_task_that_is_being_assigned_is_not_started(board, queue, on_board, virtual, commits):
    """SES-3.1, REC-2.3: neither its old runner, unseen by the interrupt, nor anybody who waits for the commit."""
    on_board("T1", runner="ana")
    run_id = queue(task="T1", reason="task_assigned")
    with board.engine.connect() as assigning:
        lock_task(assigning, "T1")
        assigning.execute(text("UPDATE seats SET agent_profile_id = 'bob' WHERE task_id = 'T1'"))
        assert begin(virtual) is None
        assigning.commit() if commits else assigning.rollback()
    begun = begin(virtual)
    assert begun.run.id == run_id
    assert isinstance(begun, Over) is commits


def test_a_claim_under_way_is_found_by_whoever_assigns(board, queue, on_board, virtual):
    """SES-3.1: the assignment waits for the claim's commit, and then interrupts it."""
    on_board("T1", runner="ana")
    run_id = queue(task="T1", reason="task_assigned")
    with in_background() as start:
        with virtual.begin() as claiming:
            claims.claim(claiming, uuid.uuid4())
            call = start(assign_task, board.engine, "m", "T1", "bob")
            until_blocked(board.engine, like="%FOR UPDATE%")
        assert call.result()["interrupted"] == [str(run_id)]


def test_what_refers_to_an_agent_does_not_wait_for_a_claimer(board, queue, virtual):
    """REC-2.2: its row is held so that a mere reference, or a read of it, passes."""
    queue(agent="ana")
    with virtual.begin() as connection:
        assert claims.claim(connection, uuid.uuid4())
        with holding(board.engine, "SELECT 1 FROM agents WHERE id = 'ana' FOR KEY SHARE") as other:
            other.rollback()


@pytest.mark.parametrize(
    ("most", "other_commits", "gets"), [(1, True, None), (2, True, 1), (1, False, 0)], ids=["full", "room", "undone"]
)
def test_a_claimer_that_waited_counts_afresh(board, queue, virtual, most, other_commits, gets):
    """REC-2.2: it saw the agent free, waited for another claimer, and goes by what that one left."""
    limit(board, most)
    runs = [queue(after(minutes=n)) for n in range(3)]
    with in_background() as start, virtual.connect() as other:
        claims.claim(other, uuid.uuid4())
        call = start(begin, virtual)
        until_blocked(board.engine, like="%CROSS JOIN LATERAL%")
        other.commit() if other_commits else other.rollback()
        begun = call.result()
    assert (begun.run.id if begun else None) == (None if gets is None else runs[gets])


@pytest.mark.parametrize("most", [1, 2])
def test_claimers_at_once_never_share_a_run_nor_exceed_a_limit(board, queue, make_test_engine, most):
    """REC-2.2, 8-engineering 1: twenty rounds of four connections, each holding its claim for a random while."""
    limit(board, most)
    engines = [make_test_engine(pool_size=1) for _ in range(4)]
    for number in range(20):
        runs = [queue(after(minutes=number, seconds=n), agent=("ana", "bob")[n % 2]) for n in range(6)]
        with in_background() as start:
            calls = [start(claim_slowly, engine) for engine in engines]
            taken = [run for call in calls if (run := call.result())]
        assert len({run.id for run in taken}) == len(taken) <= most + 1
        assert {run.id for run in taken} <= set(runs)
        _within_limits(board, {"ana": most, "bob": 1})
        board.execute("DELETE FROM runs")


def claim_slowly(engine):
    while True:
        with suppress(Overtaken), engine.begin() as connection:
            run = claims.claim(connection, uuid.uuid4())
            connection.exec_driver_sql("SELECT pg_sleep(random() * 0.02)")
            return run


def _within_limits(board, most):
    rows = board.rows("SELECT agent_profile_id AS agent, count(*) AS n FROM runs WHERE status = 'claimed' GROUP BY 1")
    assert rows
    assert all(row["n"] <= most[row["agent"]] for row in rows)


@pytest.mark.parametrize("busy", [0, 1, 2, 3])
def test_what_could_start_is_what_can_be_claimed(board, queue, claim, virtual, busy):
    """REC-2.6: the net counts each agent's line up to what it has to spare, and nobody who waits."""
    limit(board, 3)
    for agent in ("ana", "bob"):
        for n in range(5):
            queue(after(minutes=n), agent=agent)
    admin.create_agent(board.engine, "acme", "carl", status="paused")
    queue(agent="carl")
    board.execute(
        "UPDATE runs SET status = 'claimed', lease_token = id, lease_expires_at = :at WHERE id IN "
        "(SELECT id FROM runs WHERE agent_profile_id = 'ana' LIMIT :busy)",
        busy=busy, at=after(minutes=1) + GRACE,
    )  # fmt: skip
    with autocommit(virtual) as connection:
        startable, bounded = (claims.startable(connection, most) for most in (100, 2))
    assert len(all_claimed(claim)) == startable
    assert bounded == min(2, startable)
