"""What a caller gets for every outcome, through a real worker and the result backend."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from office_tasks import admin, errors
from tests.integration.caller import events
from tests.nodes.engine import ROOT

ASSIGNED = {"task_id": "T1", "actor_type": "agent", "actor_id": "bob"}


def flat(outcome, wake_id, run_id, **more):
    return {
        "outcome": outcome,
        "reason": "task_assigned",
        "run_id": run_id,
        "wake_id": wake_id,
        "key": None,
        "observed": None,
        "allowance": None,
        **more,
    }


def test_every_outcome_is_a_flat_result_of_a_task_that_succeeded(worker, caller):
    """ADM-7.1, ADM-7.2: queued, coalesced, deduped and rate_limited, field by field; a suppression is no error."""
    first = caller.send("queue_run", "ana", "task_assigned", ASSIGNED, "K1")
    run = first.get(timeout=30)["run_id"]
    assert first.get() == flat("queued", first.id, run, key="K1", observed=0, allowance=5)
    assert str(caller.board.runs()[0]["id"]) == run
    merged = caller.send("queue_run", "ana", "task_assigned", ASSIGNED)
    assert merged.get(timeout=30) == flat("coalesced", merged.id, run)
    again = caller.send("queue_run", "ana", "task_assigned", ASSIGNED, "K1")
    assert again.get(timeout=30) == flat("deduped", again.id, run, key="K1")
    for agent in ("bob", "a2", "a3", "a4"):
        if agent != "bob":
            admin.create_agent(caller.board.engine, "acme", agent)
        assert caller.ask("queue_run", agent, "task_assigned", ASSIGNED)["outcome"] == "queued"
    admin.create_agent(caller.board.engine, "acme", "a5")
    limited = caller.send("queue_run", "a5", "task_assigned", ASSIGNED)
    assert limited.get(timeout=30) == flat("rate_limited", limited.id, None, observed=5, allowance=5)
    assert {result.state for result in (first, merged, again, limited)} == {"SUCCESS"}
    nobody = caller.ask("task_created", "no such task")
    assert nobody == flat("none", None, None, withheld="unknown_task")


def test_refusals_are_typed_errors(worker, caller, subtests):
    """ADM-7.3: the class for callers that import office_tasks, with the sentence; never retried; a decided row each."""
    engine = caller.board.engine
    admin.create_agent(engine, "acme", "sam", status="stopped")
    admin.create_workspace(engine, "quiet")
    admin.create_agent(engine, "quiet", "quinn")
    caller.ask("pause_workspace", "quiet", "holiday")
    cases = [("nina", errors.AgentNotFound), ("sam", errors.AgentNotWakeable), ("quinn", errors.WorkspacePaused)]
    for door in (("queue_run",), ("spawn_run", "run-1")):
        for agent, kind in cases:
            with subtests.test(door=door[0], agent=agent):
                sent = caller.send(*door, agent, "manual_resume")
                error = caller.error_of(sent)
                assert type(error) is kind
                assert agent in str(error)
                (row,) = caller.board.rows("SELECT * FROM wakes WHERE id = :id", id=sent.id)
                assert (row["state"], row["outcome"], row["refusal"]) == ("decided", "none", kind.refusal)
    assert caller.board.runs() == []
    assert "retry:" not in worker.logs()


def test_a_caller_that_does_not_import_us_gets_name_and_message(worker, caller):
    """ADM-7.3: name and sentence through the result backend, for code that knows only the names of the tasks."""
    script = """
        import os, sys
        from celery import Celery
        app = Celery(broker=os.environ["BROKER"], backend=os.environ["BACKEND"])
        app.conf.task_default_queue = "admission"
        error = app.send_task("office.queue_run", args=["nina", "manual_resume"]).get(timeout=30, propagate=False)
        assert not any(name.startswith("office_tasks") for name in sys.modules)
        print(type(error).__name__, "|", error)
    """
    urls = {"BROKER": caller.app.conf.broker_url, "BACKEND": caller.app.conf.result_backend}
    said = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**urls, "PATH": ""}, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    assert said == "AgentNotFound | there is no agent 'nina'\n"


def test_a_mutation_lists_what_it_owed(worker, caller):
    """ADM-7.3, ADM-10.1: create and assign succeed, list their wakes, and in `runs` only the queued ones."""
    sent = caller.send("create_task", "acme", "Paint", task_id="T1", step_id="start", assignee_id="ana")
    made = sent.get(timeout=30)
    (entry,) = made["wakes"]
    expected = {"wake_id": f"{sent.id}#1", "agent_profile_id": "ana", "reason": "task_assigned", "state": "decided"}
    assert entry == {**expected, "outcome": "queued", "refusal": None, "run_id": made["runs"][0]}
    assert (made["mutation_id"], made["task_id"], made["generation"]) == (sent.id, "T1", 1)
    admin.set_agent_status(caller.board.engine, "bob", "stopped")
    refused = caller.ask("assign_task", "T1", "bob")
    assert refused["runs"] == []
    assert [(w["state"], w["outcome"], w["refusal"]) for w in refused["wakes"]] == [
        ("decided", "none", "agent_not_wakeable")
    ]
    caller.ask("pause_workspace", "acme")
    paused = caller.ask("assign_task", "T1", "ana")
    assert [(w["state"], w["outcome"], w["refusal"]) for w in paused["wakes"]] == [("owed", "none", "workspace_paused")]
    (row,) = caller.board.rows("SELECT * FROM wakes WHERE id = :id", id=f"{sent.id}#1")
    asked = {"mutation_id": sent.id, "task_id": "T1", "payload": {"task_id": "T1"}, "key": "task_assigned:T1:ana:1"}
    decided = {"gate": "insert", "outcome": "queued", "attempts": 1, "producer": "create_task", "generation": 1}
    assert {**asked, **decided}.items() <= row.items()


def test_a_mutation_whose_fast_path_fails_leaves_its_wake_owed(worker, caller):
    """ADM-7.3: the insert of the run fails; the mutation stands, reports `none`, and is not retried for that."""
    caller.ask("create_task", "acme", "Paint", task_id="T1", step_id="start")
    caller.board.execute("ALTER TABLE runs ADD CONSTRAINT no_runs CHECK (false) NOT VALID")
    sent = caller.send("assign_task", "T1", "ana")
    done = sent.get(timeout=30)
    assert done["runs"] == []
    assert [(w["state"], w["outcome"]) for w in done["wakes"]] == [("owed", "none")]
    assert caller.board.rows("SELECT assignment_generation AS n FROM tasks") == [{"n": 1}]
    (row,) = caller.board.wakes()
    assert row["state"] == "owed"
    assert row["next_attempt_at"] is not None
    assert row["last_error"].startswith("23514")
    assert "retry:" not in worker.logs()
    assert len(events(worker.logs(), "wake_still_owed")) == 1


def test_what_a_mutation_refuses_is_not_written(worker, caller, subtests):
    """ADM-7.3, ADM-10.3: Forbidden, not-found and invalid input raise before anything is written; no retry."""
    admin.create_agent(caller.board.engine, "acme", "eve", permissions=[])
    caller.ask("create_task", "acme", "Paint", task_id="T1", step_id="start")
    cases = [
        (("T1", "ana", "eve"), errors.Forbidden),
        (("T9", "ana"), errors.NotFound),
        (("T1", "a\0"), errors.InvalidInput),
    ]
    for arguments, kind in cases:
        with subtests.test(kind.__name__):
            assert type(caller.error("assign_task", *arguments)) is kind
            assert caller.board.rows("SELECT assignment_generation AS n FROM tasks") == [{"n": 0}]
            assert caller.board.count("mutations") == 1
            assert caller.board.wakes() == []
    assert "retry:" not in worker.logs()
