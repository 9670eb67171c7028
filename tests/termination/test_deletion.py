"""Deleting an agent: the unguarded cascade."""

from __future__ import annotations

import uuid

import pytest

from db import claims, sessions
from office_tasks import admin
from office_tasks.errors import InvalidInput, NotFound
from office_tasks.ids import new_id
from office_tasks.producers.deletion import delete_agent
from recovery.rescue import rescue_once
from tests.admission.rows import store_run
from tests.admission.telling import listening
from tests.db.plans import statements
from tests.faults.waits import PATIENTLY, in_background, until_blocked
from tests.support import after
from tests.termination.handlers import executing
from tests.termination.stage import logged

LATER = after(days=1)


@pytest.fixture
def busy(stage):
    """Let `ana` drive T1, review T2, and hold nothing on T3; she talks on all three."""
    stage.create("T1", assignee="ana")
    stage.create("T2", assignee="bob")
    stage.create("T3")
    stage.add("reviewer", task="T2")
    stage.seat("approver", "ana", task=None)
    return {task: stage.converse(task, state=state) for task, state in
            (("T1", "running"), ("T2", "idle"), ("T3", "idle"))}  # fmt: skip


def test_a_run_that_was_queued_as_its_agent_went_is_cancelled(stage, busy, board):
    """SES-1.10: an admission that saw the agent just before; the rescue finds what the deletion could not."""
    stage.delete()
    orphans = {store_run(board, reason="manual_resume", agent=agent) for agent in ("ana", "ana", "zoe")}
    other = store_run(board, reason="manual_resume", agent="bob")
    assert rescue_once(board.engine, batch=2)["cancelled"] == 2
    assert rescue_once(board.engine, batch=2)["cancelled"] == 1
    assert {board.run(run)["cancel_reason"] for run in orphans} == {"agent_deleted"}
    assert board.run(other)["status"] == "queued"


def test_every_live_session_ends_on_every_task(stage, busy):
    """SES-1.10: runner, seat or nothing held: `agent_deleted`, each told once; terminal ones and others' are left."""
    old = [stage.converse("T1", state=state) for state in ("completed", "failed", "cancelled")]
    others = [stage.converse(task, "bob") for task in ("T1", "T2")]
    before = [stage.session(one) for one in old + others]
    with listening() as told:
        did = stage.delete(at=LATER)
    assert sorted(did.result["sessions"]) == sorted(map(str, busy.values()))
    for session in busy.values():
        row = stage.session(session)
        assert (row["state"], row["reason"], row["ended_at"]) == ("completed", "agent_deleted", LATER)
    assert [stage.session(one) for one in old + others] == before
    ended = [fields for _, event, fields in logged(told) if event == "session_terminated"]
    expected = [
        {"task_id": task, "session_id": str(session), "agent_profile_id": "ana", "reason": "agent_deleted",
         "from_state": "running" if task == "T1" else "idle"}
        for task, session in busy.items()
    ]  # fmt: skip
    assert sorted(ended, key=lambda one: one["task_id"]) == expected
    assert told.moved == {}, "nothing was suppressed"


def test_it_asks_no_question(stage, busy):
    """SES-1.10: unguarded: the terminator directly, in the transaction that deletes the agent."""
    with statements(stage.engine) as asked:
        stage.guard("cleo", "T1")
    with statements(stage.engine) as sent:
        assert "session" not in stage.delete().result
    assert asked[0][0] not in [sql for sql, _ in sent]


def test_its_seats_stay(stage, busy):
    """SES-1.10, SES-2.4: the task's and the templates; they still count, though nobody is there."""
    before = stage.seats()
    stage.delete()
    assert stage.seats() == before
    assert [stage.guard(task=task)["retained"] for task in ("T1", "T2")] == ["runner", "seat"]


def test_what_it_was_to_do_is_cancelled(stage, busy):
    """SES-1.10: queued runs and waiting retries, of any reason and task; what is over or another's stays."""
    ours = [
        store_run(stage.board, payload={"task_id": "T1"}),
        store_run(stage.board, payload={"task_id": "T9"}, reason="task_comment", retry_at=after(hours=3)),
        store_run(stage.board, payload={}, reason="of_our_own"),
    ]
    others = [
        store_run(stage.board, agent="bob", payload={"task_id": "T1"}),
        *(store_run(stage.board, status=status) for status in ("finished", "failed")),
    ]
    waking = [run["id"] for run in stage.board.runs() if run["agent_profile_id"] == "ana" and run["id"] not in ours]
    waking = [one for one in waking if one not in others]
    before = [stage.board.run(one) for one in others]
    did = stage.delete(at=LATER)
    assert sorted(did.result["cancelled"]) == sorted(map(str, ours + waking))
    for run in map(stage.board.run, ours + waking):
        assert (run["status"], run["cancel_reason"], run["finished_at"], run["scheduled_retry_at"]) == (
            "cancelled", "agent_deleted", LATER, None,
        )  # fmt: skip
    assert [stage.board.run(one) for one in others] == before


def test_what_it_is_doing_is_interrupted(present):
    """SES-1.10: the running execution is asked to stop and ends cancelled; its session has ended, and stays so."""
    present.create(assignee="ana")
    with executing(present.engine) as execution:
        result = present.delete().result
        ended = present.session(execution.session)
        over = execution.over()
    assert result["interrupted"] == [str(over.run.id)]
    assert result["sessions"] == [str(execution.session)]
    assert (over.result, over.ended.cancel_reason) == ("cancelled", "agent_deleted")
    assert ended["state"] == "completed"
    assert present.session(execution.session) == ended


def begin_a_claim(connection, task="T1"):
    """Claim the next run and take up its conversation, as an execution does, and commit nothing yet."""
    connection.execute(PATIENTLY)
    run = claims.claim(connection, uuid.uuid4())
    return run, sessions.obtain(connection, run.id, task, run.agent_profile_id, new_id())


@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_a_claim_under_way_is_waited_for(present, make_test_engine, how):
    """SES-1.10: deleted while its run is being claimed: that ends first; then it is interrupted, or else cancelled."""
    present.create(assignee="ana")
    with make_test_engine().connect() as claimer, in_background() as start:
        run, session = begin_a_claim(claimer)
        call = start(present.delete)
        until_blocked(present.engine, like="%DELETE FROM agents%")
        getattr(claimer, how)()
        result = call.result(20).result
    claimed = how == "commit"
    assert result["interrupted"] == ([str(run.id)] if claimed else [])
    assert result["cancelled"] == ([] if claimed else [str(run.id)])
    assert result["sessions"] == ([str(session.id)] if claimed else [])
    assert not present.is_live()
    assert present.board.run(run.id)["cancel_reason"] == "agent_deleted"


def test_nothing_is_claimed_for_it_any_more(present):
    """SES-1.10: a wake that comes later is refused, a run that is left is nobody's, and no session begins."""
    present.create(assignee="ana")
    present.delete()
    present.board.ask(None, agent="ana", reason="of_our_own")
    store_run(present.board)
    with present.engine.connect() as connection:
        assert claims.claim(connection, uuid.uuid4()) is None
    assert [wake["refusal"] for wake in present.board.wakes()][-1] == "agent_not_found"


def test_it_is_deleted_once(stage, busy):
    """SES-1.10, PRO-6.1: the message again returns the same; another one finds no such agent, and writes nothing."""
    first = delete_agent(stage.engine, "one", "ana")
    before = stage.everything()
    assert delete_agent(stage.engine, "one", "ana") == first
    with pytest.raises(NotFound, match="'ana'"):
        delete_agent(stage.engine, "two", "ana")
    assert stage.everything() == before


def test_its_name_may_be_taken_again(stage, busy):
    """SES-1.10, SES-2.4: a new agent of that id finds the seats, and begins a conversation of its own."""
    stage.delete()
    admin.create_agent(stage.engine, "acme", "ana")
    assert stage.guard(task="T2")["retained"] == "seat"
    stage.converse("T2")
    assert stage.is_live("T2")


@pytest.mark.parametrize("wrong", ["", " ", None, 7, ["ana"], "a\0"], ids=repr)
def test_no_identifier_is_no_agent(stage, busy, wrong):
    """SES-1.10: typed, nothing written."""
    before = stage.everything()
    with pytest.raises(InvalidInput, match="agent_profile_id"):
        delete_agent(stage.engine, "m", wrong)
    assert stage.everything() == before


def test_a_death_behind_the_commit_loses_nothing(stage, busy, cut_off):
    """SES-1.10: all of it is one commit."""
    cut_off(delete_agent, stage.engine, "cut", "ana")
    assert not any(stage.is_live(task) for task in busy)
    assert len(delete_agent(stage.engine, "cut", "ana")["sessions"]) == 3
