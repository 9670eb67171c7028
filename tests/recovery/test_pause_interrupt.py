"""Pausing a workspace and asking what it executes to stop (REC-2.10)."""

from __future__ import annotations

import uuid

import pytest
from structlog.testing import capture_logs

from db import claims
from office_tasks import admin, tasks
from office_tasks.errors import InvalidInput
from office_tasks.producers.after import settle
from office_tasks.producers.pauses import pause_workspace, resume_workspace
from tests.admission.rows import store_run
from tests.db.plans import custom, generic, statements
from tests.faults.waits import in_background, until_blocked
from tests.support import T0, after

ASKED = "workspace_paused"


def claim(board, run_id, at):
    board.set_status(run_id, "claimed")
    board.execute("UPDATE runs SET claimed_at = :at WHERE id = :id", at=at, id=run_id)
    return run_id


@pytest.fixture
def runs(board):
    """Two executions in `acme`, of two agents, one of them without a task; one waiting, one over, one elsewhere."""
    admin.create_workspace(board.engine, "quiet")
    admin.create_agent(board.engine, "quiet", "quinn")
    named = {
        "on a task": claim(board, store_run(board, payload={"task_id": "T1"}), after(minutes=1)),
        "on none": claim(board, store_run(board, agent="bob", payload=[1]), after(minutes=2)),
        "waiting": store_run(board),
        "over": store_run(board, status="finished"),
        "elsewhere": claim(board, store_run(board, agent="quinn"), after(minutes=1)),
    }
    return {name: str(run_id) for name, run_id in named.items()}


def pause(board, message="p", minutes=10, **more):
    return pause_workspace(board.engine, message, "acme", "lunch", after(minutes=minutes), **more)


def asked(board, runs):
    """Return who was asked to stop, and check that nothing else of any run moved."""
    rows = {name: board.run(run_id) for name, run_id in runs.items()}
    assert {name: row["status"] for name, row in rows.items()} == {
        "on a task": "claimed", "on none": "claimed", "waiting": "queued", "over": "finished", "elsewhere": "claimed",
    }  # fmt: skip
    assert all((row["cancel_requested_at"] is None) == (row["cancel_reason"] is None) for row in rows.values())
    return {name: row["cancel_reason"] for name, row in rows.items() if row["cancel_requested_at"]}


def test_a_pause_alone_interrupts_nobody(board, runs):
    """REC-2.10: running executions go on, and the result does not speak of them."""
    assert "interrupted" not in pause(board)
    assert asked(board, runs) == {}


def test_an_interrupt_asks_every_execution_of_the_workspace(board, runs):
    """REC-2.10: with a task or without, of every agent, and of no other workspace; each is named and logged."""
    with capture_logs() as logs:
        result = pause(board, interrupt=True)
    assert sorted(result["interrupted"]) == sorted([runs["on a task"], runs["on none"]])
    assert asked(board, runs) == {"on a task": ASKED, "on none": ASKED}
    said = [entry for entry in logs if entry["event"] == "run_interrupted"]
    assert [(entry["run_id"], entry["workspace_id"]) for entry in said] == [
        (run_id, "acme") for run_id in result["interrupted"]
    ]


@pytest.mark.usefixtures("office")
def test_the_celery_task_takes_it(board, runs):
    """REC-2.10: `office.pause_workspace(workspace_id, reason="", interrupt=False)`, delivered twice."""
    said = [tasks.pause_workspace.apply(("acme",), {"interrupt": True}, task_id="p").get() for _ in range(2)]
    assert said[0] == said[1]
    assert sorted(said[0]["interrupted"]) == sorted([runs["on a task"], runs["on none"]])


def test_what_is_paused_already_can_be_interrupted(board, runs):
    """REC-2.10: the second call pauses nothing, and asks all the same."""
    pause(board, "p1")
    result = pause(board, "p2", minutes=11, interrupt=True)
    assert (result["changed"], len(result["interrupted"])) == (False, 2)
    assert asked(board, runs) == {"on a task": ASKED, "on none": ASKED}


def test_a_redelivered_interrupt_returns_what_it_stored(board, runs):
    """REC-2.10, PRO-6.1: settled, it asks nobody again, whoever works by then."""
    first = pause(board, interrupt=True)
    resume_workspace(board.engine, "r", "acme", after(minutes=20))
    late = claim(board, store_run(board), after(minutes=21))
    assert pause(board, minutes=30, interrupt=True) == first
    assert board.run(late)["cancel_requested_at"] is None


def test_an_interrupt_that_died_is_made_up_for(board, runs, cut_off):
    """REC-2.10, PRO-6.1: killed behind its commit, the redelivery asks from the stored facts."""
    cut_off(
        pause_workspace, board.engine, "p", "acme", "lunch", after(minutes=10), point="after_commit", interrupt=True
    )
    assert asked(board, runs) == {}
    assert len(pause(board, minutes=11, interrupt=True)["interrupted"]) == 2
    assert asked(board, runs) == {"on a task": ASKED, "on none": ASKED}


@pytest.mark.parametrize("then_paused", [False, True], ids=["resumed", "paused again"])
def test_settled_after_the_resume_it_spares_what_began_since(board, runs, cut_off, then_paused):
    """REC-2.10, PRO-6.1: what was claimed after the pause was over is not its business, in a later pause neither."""
    cut_off(
        pause_workspace, board.engine, "p", "acme", "lunch", after(minutes=10), point="after_commit", interrupt=True
    )
    resume_workspace(board.engine, "r", "acme", after(minutes=20))
    late = claim(board, store_run(board), after(minutes=21))
    if then_paused:
        pause(board, "p2", minutes=22)
    assert len(settle(board.engine, "p")["interrupted"]) == 2
    assert board.run(late)["cancel_requested_at"] is None


def test_a_pause_waits_for_the_claim_that_is_under_way(board):
    """REC-2.2, REC-2.10: so that it finds it, and none comes after it."""
    run_id = store_run(board, reason="manual_resume")
    store_run(board, agent="bob", reason="manual_resume")
    with in_background() as start:
        with board.engine.begin() as claiming:
            claims.claim(claiming, uuid.uuid4())
            pausing = start(pause_workspace, board.engine, "p", "acme", interrupt=True)
            until_blocked(board.engine, like="%workspaces%")
        assert pausing.result()["interrupted"] == [str(run_id)]
    with board.engine.begin() as later:
        assert claims.claim(later, uuid.uuid4()) is None


def test_who_was_asked_before_keeps_the_reason(board, runs):
    """REC-2.10: the first to ask is the one that is named; asking again moves no deadline."""
    board.execute("UPDATE runs SET cancel_requested_at = :at, cancel_reason = 'operator' WHERE id = :id",
                  at=T0, id=runs["on none"])  # fmt: skip
    assert pause(board, interrupt=True)["interrupted"] == [runs["on a task"]]
    assert asked(board, runs) == {"on a task": ASKED, "on none": "operator"}
    assert str(board.run(runs["on none"])["cancel_requested_at"]) == str(T0)


@pytest.mark.parametrize("value", ["no", 1, None, []])
def test_an_interrupt_is_true_or_false(board, value):
    """ADM-8.2: text that means no is not taken for yes; nothing is written."""
    with pytest.raises(InvalidInput, match="interrupt: must be true or false"):
        pause(board, interrupt=value)
    assert board.count("mutations") == board.count("pauses") == 0


@pytest.mark.parametrize("kind", [custom, generic])
def test_the_interrupt_looks_at_executions_alone(board, kind):
    """REC-2.10, R08: by the index of what is claimed, agent by agent: no walk over all runs there ever were."""
    with statements(board.engine) as sent:
        pause(board, interrupt=True)
    [settling] = [one for one in sent if "workspace_paused" in one[0]]
    plan = kind(board.engine, *settling)
    assert "runs" not in plan.scanned
    assert plan.indexes >= {"ix_runs_leased", "ix_agents_workspace_id"}
