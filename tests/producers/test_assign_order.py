"""What `assign_task` does inside its transaction, and what after: in that order, and none undoing another."""

from __future__ import annotations

import pytest

from office_tasks import admin
from office_tasks.errors import Forbidden
from office_tasks.producers.after import settle
from tests.admission.rows import store_run
from tests.faults.gates import Restricted
from tests.producers.acts import Acts
from tests.support import after

TASK = {"task_id": "T1"}


@pytest.fixture
def t1(acts):
    """Task T1, driven by ana, whose run has been claimed; and a retry of hers that waits."""
    return furnish(acts)


def furnish(acts):
    acts.create()
    first = acts.assign(agent="ana")
    acts.start(first)
    acts.running = first.wakes[0]["run_id"]
    acts.retry = store_run(acts.board, after(minutes=2), payload=TASK, retry_at=after(hours=1))
    return acts


def state(acts, run_id):
    run = acts.board.run(run_id)
    return run["status"], run["cancel_reason"], run["cancel_requested_at"] is not None


@pytest.mark.parametrize("agent", ["bob", ""], ids=["another", "nobody"])
def test_the_displaced_runners_retries_are_cancelled_and_its_execution_interrupted(t1, agent):
    """PRO-3.5: an unassignment displaces too; both are told in the result."""
    did = t1.assign(agent=agent)
    assert did.result["cancelled_retries"] == [str(t1.retry)]
    assert did.result["interrupted"] == [str(t1.running)]
    assert state(t1, t1.retry) == ("cancelled", "task_reassigned", False)
    assert state(t1, t1.running) == ("claimed", "interrupted", True)
    assert t1.board.run(t1.retry)["scheduled_retry_at"] is None


def test_a_repeat_to_the_same_agent_interrupts_nobody(t1):
    """PRO-3.5, PRO-2.1: its waiting retry goes, for the new wake takes its place; its execution goes on."""
    did = t1.assign(agent="ana")
    assert did.result["cancelled_retries"] == [str(t1.retry)]
    assert "interrupted" not in did.result
    assert state(t1, t1.running) == ("claimed", None, False)


def test_only_what_is_this_agents_on_this_task_is_touched(t1):
    """PRO-3.5: not another task's, not another agent's, not a run that waits for no retry, not what is over."""
    spared = [
        store_run(t1.board, after(minutes=2), payload={"task_id": "T2"}, retry_at=after(hours=1)),
        store_run(t1.board, after(minutes=2), agent="bob", payload=TASK, retry_at=after(hours=1)),
        store_run(t1.board, after(minutes=2), payload=TASK),
        store_run(t1.board, after(minutes=2), payload=TASK, status="finished"),
        store_run(t1.board, after(minutes=2), payload={"task_id": "T2"}, status="claimed"),
        store_run(t1.board, after(minutes=2), agent="bob", payload=TASK, status="claimed"),
    ]
    t1.board.execute("UPDATE runs SET claimed_at = :at WHERE status = 'claimed'", at=after(minutes=3))
    before = [state(t1, run_id) for run_id in spared]
    t1.assign(agent="bob")
    assert [state(t1, run_id) for run_id in spared] == before


@pytest.mark.parametrize(("claimed", "interrupted"), [(-1, True), (0, True), (1, False)])
def test_only_what_was_claimed_before_the_commit_is_interrupted(t1, claimed, interrupted):
    """PRO-3.5, PRO-6.1: settled late or again, it leaves alone what the agent took up since."""
    at = after(minutes=30)
    t1.board.execute(
        "UPDATE runs SET claimed_at = :at WHERE id = :id", at=after(minutes=30, seconds=claimed), id=t1.running
    )
    t1.assign(agent="bob", at=at)
    assert state(t1, t1.running)[2] == interrupted


def test_a_second_settling_does_not_interrupt_the_agent_that_came_back(t1):
    """PRO-6.1: the interrupt is repeatable: what was claimed after that commit goes on."""
    away = t1.assign(agent="bob")
    back = t1.assign(agent="ana")
    t1.start(back)
    t1.board.execute(
        "UPDATE mutations SET settled_at = NULL, result = NULL WHERE id = :id", id=away.result["mutation_id"]
    )
    again = settle(t1.engine, away.result["mutation_id"])
    assert again["interrupted"] == []
    assert state(t1, back.wakes[0]["run_id"]) == ("claimed", None, False)


def test_a_forbidden_caller_cancels_and_interrupts_nothing(t1):
    """PRO-3.5: the permission comes first; nothing is written."""
    admin.create_agent(t1.engine, "acme", "guest", role="guest")
    before = (t1.board.runs(), t1.board.wakes(), t1.board.count("mutations"), t1.board.count("events"), t1.generation())
    with pytest.raises(Forbidden):
        t1.assign(agent="bob", by="guest")
    after_ = (t1.board.runs(), t1.board.wakes(), t1.board.count("mutations"), t1.board.count("events"), t1.generation())
    assert after_ == before


@pytest.fixture
def role(board, make_test_engine):
    """A role that may do what the office does, until something is taken away from it; and T1, furnished."""
    restricted = Restricted(board, make_test_engine)
    restricted.t1 = furnish(Acts(board))
    restricted.acts = Acts(board, restricted.engine())
    restricted.acts._messages = 100
    yield restricted
    restricted.drop()


def keep_columns(role, table, privilege, *without):
    """Take a privilege away on some columns of a table only."""
    columns = role.board.rows(
        "SELECT string_agg(column_name, ', ') AS rest FROM information_schema.columns WHERE table_schema = 'public' "
        "AND table_name = :table AND is_generated = 'NEVER' AND NOT column_name = ANY(:without)",
        table=table,
        without=list(without),
    )
    role.revoke(privilege, table)
    role.board.execute(f"GRANT {privilege} ({columns[0]['rest']}) ON {table} TO {role.role}")


INSIDE = {
    "the retries": lambda role: keep_columns(role, "runs", "UPDATE", "cancel_reason"),
    "the seat": lambda role: role.revoke("INSERT", "seats"),
    "the generation": lambda role: keep_columns(role, "tasks", "UPDATE", "assignment_generation"),
    "the wakes": lambda role: role.revoke("INSERT", "wakes"),
    "the event": lambda role: role.revoke("INSERT", "events"),
    "the mutation": lambda role: role.revoke("INSERT", "mutations"),
}


@pytest.mark.parametrize("fail", INSIDE.values(), ids=INSIDE)
def test_what_is_inside_the_transaction_commits_or_fails_as_one(role, fail):
    """PRO-3.5, PRO-6.1: whichever part fails, none of the others is there."""
    from sqlalchemy.exc import DBAPIError

    def everything():
        tables = ("tasks", "seats", "runs", "wakes", "mutations", "events")
        return {table: sorted(map(str, role.board.rows(f"SELECT * FROM {table}"))) for table in tables}

    before = everything()
    fail(role)
    with pytest.raises(DBAPIError):
        role.acts.assign(agent="bob")
    assert everything() == before


AFTER = {
    "the admission": lambda role: role.revoke("INSERT", "runs"),
    "the interrupt": lambda role: keep_columns(role, "runs", "UPDATE", "cancel_requested_at"),
    "the settling": lambda role: role.revoke("UPDATE", "mutations"),
}


@pytest.mark.parametrize("part", AFTER)
def test_no_part_after_the_commit_undoes_another(role, part):
    """PRO-3.5, PRO-5.3: each fails by itself; what is committed stands, and a later settling makes up for it."""
    AFTER[part](role)
    did = role.acts.assign(agent="bob", at=after(minutes=30))
    [wake] = did.wakes
    assert role.acts.generation() == 2
    assert wake["state"] == ("owed" if part == "the admission" else "decided")
    assert did.result["runs"] == ([] if part == "the admission" else [str(wake["run_id"])])
    assert state(role.t1, role.t1.running)[2] == (part != "the interrupt")
    assert state(role.t1, role.t1.retry)[0] == "cancelled"
    [mutation] = role.board.rows("SELECT * FROM mutations WHERE id = :id", id=did.result["mutation_id"])
    # What could not be interrupted is not settled either: it is tried again with the settling.
    assert (mutation["settled_at"] is None) == (part != "the admission")
    if part != "the admission":
        assert settle(role.board.engine, did.result["mutation_id"], after(minutes=31))["runs"] == did.result["runs"]
        assert state(role.t1, role.t1.running)[2]
