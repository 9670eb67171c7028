"""Going keyless: the producer says why, it is counted when the wake is decided, and never again."""

from __future__ import annotations

import pytest

from office_tasks.producers import bare
from office_tasks.producers.after import settle
from office_tasks.producers.pauses import resume_workspace
from tests.admission import source
from tests.admission.telling import KEYLESS, counted, listening
from tests.producers.table import TABLE
from tests.support import after

UNRESOLVED = counted(KEYLESS, reason="task_assigned", cause="unresolved")
DETAILS = {
    "event_missing_generation", "onboarding_no_generation", "zero_step_transition", "no_caller_run",
    "nil_mutation_generation", "nil_mutation_comment",
}  # fmt: skip


def test_the_details_are_those_of_the_contract():
    """PRO-4: six constants, each written once in the code, and each driven by the table of producers."""
    assert {row.keyless[1] for row in TABLE if row.keyless} - {None} == DETAILS
    written = [text for _, tree in source.modules("office_tasks", "recovery") for text in source.strings(tree)]
    assert {detail: written.count(detail) for detail in DETAILS} == dict.fromkeys(DETAILS, 1)


def test_the_cause_is_never_inferred(acts):
    """PRO-4: two wakes without a key, of one reason: each has the cause that its producer gave."""
    acts.ask(bare.spawn_run("s1", "r1", "ana", "moon", {}, ""))
    acts.ask(bare.spawn_run("s2", None, "ana", "moon", {}, ""))
    causes = [(wake["key"], wake["keyless_cause"], wake["keyless_detail"]) for wake in acts.board.wakes()]
    assert causes == [(None, "by_design", None), (None, "unresolved", "no_caller_run")]


def test_it_is_counted_when_the_wake_is_decided(acts):
    """PRO-4: not while the wake is owed, once when it is decided, and not again when it is settled again."""
    acts.create(step_id="wait", assignee="ana")
    acts.board.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
    with listening() as told:
        did = acts.enter()
        settle(acts.engine, did.result["mutation_id"])
    assert (did.wakes[0]["state"], told.moved, told.events("run_enqueued_keyless")) == ("owed", {}, [])
    with listening() as told:
        resume_workspace(acts.engine, "r1", "acme", after(hours=1))
    assert told.moved[UNRESOLVED] == 1
    assert [entry["detail"] for entry in told.events("run_enqueued_keyless")] == ["zero_step_transition"]
    acts.board.execute("UPDATE mutations SET settled_at = NULL, result = NULL")
    with listening() as told:
        settle(acts.engine, did.result["mutation_id"])
    assert UNRESOLVED not in told.moved


def test_a_redelivery_counts_nothing(acts):
    """PRO-4: the same message again, the same answer."""
    wake = bare.spawn_run("s1", None, "ana", "task_assigned", {}, "k")
    with listening() as told:
        for _ in range(3):
            acts.ask(wake)
    assert told.moved[UNRESOLVED] == 1
    assert len(told.events("run_enqueued_keyless")) == 1


@pytest.mark.parametrize("refuse", ["UPDATE agents SET status = 'stopped'", None], ids=["refused", "admitted"])
def test_a_decision_counts_however_it_comes_out(acts, refuse):
    """PRO-4: refused by a gate or not, it was decided without a key."""
    acts.create(step_id="wait", assignee="ana")
    if refuse:
        acts.board.execute(refuse)
    with listening() as told:
        acts.enter()
    assert told.moved[UNRESOLVED] == 1


def test_no_label_is_a_detail(acts):
    """PRO-4: reason and cause, nothing else."""
    with listening() as told:
        acts.onboard()
    assert {labels for name, labels in told.moved if name == KEYLESS} == {
        (("cause", "unresolved"), ("reason", "task_assigned"))
    }


def test_a_key_of_an_agent_is_its_runs_own(acts):
    """PRO-1.6: the same literal from two runs does not collide; from one run, in two messages, it is deduped."""
    said = [
        acts.ask(bare.spawn_run(f"s{n}", run, "ana", "moon", {}, "same")).result
        for n, run in enumerate(["r1", "r1", "r2"])
    ]
    assert [(one["outcome"], one["key"]) for one in said] == [
        ("queued", "agent:r1:same"), ("deduped", "agent:r1:same"), ("queued", "agent:r2:same"),
    ]  # fmt: skip


def test_a_trusted_callers_key_is_global(acts):
    """PRO-1: as given, whoever asks and whomever for; that of another producer too."""
    acts.create(assignee="ana")
    said = [
        acts.ask(bare.queue_run(f"q{n}", agent, "moon", {}, key)).result["outcome"]
        for n, (agent, key) in enumerate([("ana", "k"), ("bob", "k"), ("bob", "task_assigned:T1:ana:1")])
    ]
    assert said == ["queued", "deduped", "deduped"]
