"""What an operator orders of a run: cancelling it, and having its work done again."""

from __future__ import annotations

import json
import uuid

import pytest
from sqlalchemy import text

from db import executions
from db.states import RUN_LIVE, RUN_TERMINAL
from office_tasks import admin
from office_tasks.errors import AgentNotFound, AgentNotWakeable, InvalidInput, NotFound, WorkspacePaused
from office_tasks.execution import orders
from office_tasks.producers.pauses import pause_workspace, resume_workspace
from tests.admission.rows import store_run
from tests.faults.waits import holding, in_background, until_blocked
from tests.support import T0, after

CLAIM = (
    "UPDATE runs SET status = 'claimed', lease_token = gen_random_uuid(), lease_expires_at = now(), claimed_at = now() "
    "WHERE id = :id AND status = 'queued'"
)
FINISH = (
    "UPDATE runs SET status = 'finished', lease_token = NULL, lease_expires_at = NULL, finished_at = now() "
    "WHERE id = :id AND status = 'claimed'"
)
AT = after(hours=1)


def store(board, status="queued", **more):
    run_id = store_run(board, status="finished" if status == "cancelled" else status, **more)
    if status == "cancelled":
        board.execute("UPDATE runs SET status = 'cancelled', cancel_reason = 'test' WHERE id = :id", id=run_id)
    return run_id


def state(board, run_id):
    row = board.run(run_id)
    return row["status"], row["cancel_reason"], row["cancel_requested_at"], row["finished_at"]


@pytest.mark.parametrize("retry_at", [None, after(hours=2)], ids=["in line", "waiting for its retry"])
def test_a_queued_run_is_cancelled_at_once(board, retry_at):
    """REC-2.1, REC-2.10: over, by the operator, and no retry is left."""
    run_id = store(board, retry_at=retry_at)
    assert orders.cancel(board.engine, str(run_id), AT) == {
        "run_id": str(run_id), "status": "cancelled", "cancel_requested_at": None, "changed": True,
    }  # fmt: skip
    assert state(board, run_id) == ("cancelled", "operator", None, AT)
    assert board.run(run_id)["scheduled_retry_at"] is None


def test_a_running_execution_is_asked_to_stop_once(board):
    """REC-2.10: it stays claimed, its lease untouched; asked again, neither the deadline nor the reason moves."""
    run_id = store(board, "claimed")
    before = board.run(run_id)
    assert [orders.cancel(board.engine, str(run_id), at)["changed"] for at in (AT, after(hours=2))] == [True, False]
    asked = {"cancel_requested_at": AT, "cancel_reason": "operator"}
    assert board.run(run_id) == {**before, **asked}


def test_a_cancelled_run_is_cancelled_already(board):
    """REC-2.10: an order may be given twice."""
    run_id = store(board, "cancelled")
    before = board.run(run_id)
    assert (orders.cancel(board.engine, str(run_id), AT)["changed"], board.run(run_id)) == (False, before)


@pytest.mark.parametrize("status", ["finished", "failed"])
def test_a_run_that_is_over_stays_as_it_is(board, status):
    """REC-2.1: each run settles once; the error names its state."""
    run_id = store(board, status)
    before = board.run(run_id)
    with pytest.raises(InvalidInput, match=f"run {run_id} was not cancelled: it is {status}"):
        orders.cancel(board.engine, str(run_id), AT)
    assert board.run(run_id) == before


def test_only_the_named_run_is_cancelled(board):
    """REC-2.10: not the next one of the same agent and task."""
    others = [store(board, status) for status in (*RUN_LIVE, *RUN_TERMINAL)]
    before = [board.run(run_id) for run_id in others]
    orders.cancel(board.engine, str(store(board)), AT)
    assert [board.run(run_id) for run_id in others] == before


def test_a_cancellation_that_waits_for_a_claim_asks_the_claimer(board):
    """REC-2.2, REC-2.10: what it read as queued was claimed meanwhile; it is asked to stop, not overwritten."""
    run_id = store(board)
    with holding(board.engine, CLAIM, id=run_id) as claim, in_background() as start:
        cancelling = start(orders.cancel, board.engine, str(run_id), AT)
        until_blocked(board.engine, like="%cancel_reason%")
        claim.commit()
        assert (cancelling.result()["status"], cancelling.result()["changed"]) == ("claimed", True)
    assert state(board, run_id) == ("claimed", "operator", AT, None)
    assert board.run(run_id)["lease_token"] is not None


def test_a_cancellation_that_waits_for_a_claim_that_fails_cancels(board):
    """REC-2.1: the claim was rolled back, so the run is queued still."""
    run_id = store(board)
    with holding(board.engine, CLAIM, id=run_id) as claim, in_background() as start:
        cancelling = start(orders.cancel, board.engine, str(run_id), AT)
        until_blocked(board.engine, like="%cancel_reason%")
        claim.rollback()
        assert cancelling.result()["status"] == "cancelled"
    assert state(board, run_id) == ("cancelled", "operator", None, AT)


def test_a_cancellation_that_waits_for_the_end_comes_too_late(board):
    """REC-2.1: the result stands."""
    run_id = store(board, "claimed")
    with holding(board.engine, FINISH, id=run_id) as ending, in_background() as start:
        cancelling = start(orders.cancel, board.engine, str(run_id), AT)
        until_blocked(board.engine, like="%cancel_reason%")
        ending.commit()
        with pytest.raises(InvalidInput, match="it is finished"):
            cancelling.result()
    assert state(board, run_id)[:3] == ("finished", None, None)


def test_a_claim_that_waits_for_a_cancellation_gets_nothing(board):
    """REC-2.2: a run that was cancelled is never started."""
    run_id = store(board)

    def claim():
        with board.engine.begin() as connection:
            return connection.execute(text(CLAIM), {"id": run_id}).rowcount

    with board.engine.begin() as cancelling, in_background() as start:
        assert executions.cancel(cancelling, run_id, executions.OPERATOR, AT) == "cancelled"
        claiming = start(claim)
        until_blocked(board.engine, like="%lease_token%")
        cancelling.commit()
        assert claiming.result() == 0
    assert state(board, run_id) == ("cancelled", "operator", None, AT)


PAYLOADS = {
    "a list": [1, {"task_id": "T1"}], "null": None, "text": "T1", "a number": 1.5, "false": False, "empty": {},
    "nested": {"task_id": "T1", "a": {"b": [{"c": None}, [], ""]}}, "no text as its task": {"task_id": 7},
    "escapes": {'a"b\\': "\u2028 \\u0000"}, "long when read back": {"n": [1e300] * 2000},
    "an actor": {"task_id": "T1", "actor_type": "agent", "actor_id": "bob"},
}  # fmt: skip


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
@pytest.mark.parametrize("status", RUN_TERMINAL)
def test_a_retry_carries_the_payload_unchanged(board, payload, status):
    """REC-2.1, ADM-8.1: a new run: agent and payload the same as Postgres compares, no key, its own reason."""
    old = store_run(board, agent="bob", status="finished", key="k:1")
    board.execute(
        "UPDATE runs SET payload = CAST(:payload AS jsonb), status = :status WHERE id = :id",
        payload=json.dumps(payload), status=status, id=old,
    )  # fmt: skip
    before = board.run(old)
    result = orders.retry(board.engine, "w1", str(old), AT)
    assert (result["outcome"], result["key"], result["retried"]) == ("queued", None, str(old))
    assert board.rows(
        "SELECT new.payload = old.payload AS same, new.agent_profile_id, new.reason, new.status, new.attempt, "
        "new.requested_at, new.task_id IS NOT DISTINCT FROM old.task_id AS same_task "
        "FROM runs new, runs old WHERE new.id = :new AND old.id = :old",
        new=result["run_id"], old=old,
    ) == [{
        "same": True, "agent_profile_id": "bob", "reason": "manual_resume", "status": "queued", "attempt": 0,
        "requested_at": AT, "same_task": True,
    }]  # fmt: skip
    assert board.run(old) == before
    [wake] = board.wakes()
    assert (wake["producer"], wake["keyless_cause"], wake["keyless_detail"]) == ("manual_resume", "by_design", None)


@pytest.mark.parametrize("status", RUN_LIVE)
def test_what_is_not_over_is_not_retried(board, status):
    """REC-2.1: one run of that work is enough; nothing is written."""
    run_id = store(board, status)
    with pytest.raises(InvalidInput, match=f"run {run_id} was not retried: it is {status}, and not over"):
        orders.retry(board.engine, "w1", str(run_id), AT)
    assert (board.count("runs"), board.count("wakes")) == (1, 0)


@pytest.mark.parametrize("status", ["paused", "stopped", "pending_approval"])
def test_a_retry_for_an_agent_that_may_not_be_woken_is_refused(board, status):
    """ADM-1.1, ADM-2.1: it passes the gates like any wake, and says what refused it."""
    run_id = store(board, "failed")
    admin.set_agent_status(board.engine, "ana", status)
    with pytest.raises(AgentNotWakeable, match=f"agent 'ana' is {status}"):
        orders.retry(board.engine, "w1", str(run_id), AT)
    assert (board.count("runs"), board.wakes()[0]["refusal"]) == (1, "agent_not_wakeable")


def test_a_retry_in_a_paused_workspace_is_refused_until_it_is_resumed(board):
    """ADM-2.6: refused, not owed: resuming brings nothing back that was ordered by hand."""
    run_id = store(board, "failed")
    pause_workspace(board.engine, "p", "acme", instant=T0)
    with pytest.raises(WorkspacePaused):
        orders.retry(board.engine, "w1", str(run_id), AT)
    assert resume_workspace(board.engine, "r", "acme", AT)["replayed"] == {}
    assert orders.retry(board.engine, "w2", str(run_id), AT)["outcome"] == "queued"


def test_a_retry_for_an_agent_that_is_gone_is_refused(board):
    """ADM-2.1: gate 1."""
    run_id = store(board, "failed", agent="zoe")
    with pytest.raises(AgentNotFound):
        orders.retry(board.engine, "w1", str(run_id), AT)


def test_two_retries_at_once_are_one_run_and_later_ones_are_not(board):
    """ADM-4.1, PRO-1.3: merged within the window, told as such; no key suppresses a later order."""
    run_id = store(board, "failed", payload={"task_id": "T1"})
    said = [orders.retry(board.engine, f"w{n}", str(run_id), after(seconds=n)) for n in (0, 4, 10)]
    assert [one["outcome"] for one in said] == ["queued", "coalesced", "queued"]
    assert said[1]["run_id"] == said[0]["run_id"] != said[2]["run_id"]


def test_one_order_given_twice_is_one_order(board):
    """ADM-10.3: the wake's id makes it recognisable."""
    run_id = store(board, "failed")
    said = [orders.retry(board.engine, "w1", str(run_id), at) for at in (AT, after(hours=2))]
    assert said[0] == said[1]
    assert board.count("runs") == 2


@pytest.mark.parametrize("order", [orders.cancel, lambda engine, run_id: orders.retry(engine, "w1", run_id)])
def test_what_names_no_run_is_told(board, order):
    """ADM-8.2: no UUID, a NUL, no text at all, or nobody's; nothing is written."""
    for value in ("", "T1", "run\0", 7, None, ["x"]):
        with pytest.raises(InvalidInput, match="run_id: must"):
            order(board.engine, value)
    unknown = str(uuid.uuid4())
    with pytest.raises(NotFound, match=f"there is no run '{unknown}'"):
        order(board.engine, unknown)
    assert (board.count("runs"), board.count("wakes")) == (0, 0)
