"""The counters: what each decision moves, and nothing more."""

from __future__ import annotations

import random
import string

import pytest

from office_tasks import admin, telemetry
from office_tasks.admission import ASSIGNMENT_ALLOWANCE, Keyless, admit, wake
from office_tasks.errors import InvalidInput
from tests.admission.rows import store_agent_assignments
from tests.admission.telling import ADMISSIONS, DEDUP, KEYLESS, LIMIT, REFUSALS, counted, listening, series
from tests.support import T0, after

LABELS = {
    ADMISSIONS: {"reason", "outcome"},
    DEDUP: {"reason", "kind", "queue"},
    KEYLESS: {"reason", "cause"},
    LIMIT: {"reason"},
    REFUSALS: {"reason", "refusal"},
}
# What other tests of the same process may have moved.
OTHERS = {"office_recovery_total", "office_run_executions_total", "office_session_term_suppressed_total"}


def keyless_wake(reason="task_assigned", cause="unresolved", detail="no_caller_run", wake_id="w"):
    return wake(
        wake_id=wake_id,
        agent_profile_id="ana",
        reason=reason,
        payload={},
        key=None,
        keyless=Keyless(cause, detail),
        producer="test",
    )


def test_the_counters_and_their_labels(acme):
    """ADM-9.1: five counters of decisions, with these labels and no others."""
    store_agent_assignments(acme, *[T0] * ASSIGNMENT_ALLOWANCE)
    acme.ask(key="k")
    acme.ask(key="k")
    acme.assigned()
    acme.ask(agent="ghost")
    found = {}
    for name, labels in series():
        found.setdefault(name, set()).update(label for label, _ in labels)
    assert {name: found.get(name) for name in LABELS} == LABELS
    assert {name for name in found if name not in LABELS} <= OTHERS


def test_a_thousand_reasons_are_one_series(acme):
    """ADM-9.1: unknown reasons are `custom`, in every counter, whatever the reason."""
    source = random.Random(9)
    words = ["".join(source.choices(string.printable.strip() + "éß🦉", k=12)) for _ in range(1000)]
    before = set(series())
    with listening() as told:
        for n, reason in enumerate(words):
            acme.ask(after(seconds=n), reason=reason, key=f"k{n}")
    assert told.moved == {counted(ADMISSIONS, reason="custom", outcome="queued"): 1000}
    assert len(set(series()) - before) <= 1


def test_no_label_takes_what_a_wake_names(acme):
    """ADM-9.1: no task, agent, run or free text ends up in a label."""
    odd = "OddlyNamed"
    admin.create_agent(acme.engine, "acme", odd)
    store_agent_assignments(acme, *[T0] * ASSIGNMENT_ALLOWANCE, task=odd)
    payload = {"task_id": odd, "actor_type": "agent", "actor_id": odd}
    acme.ask(agent=odd, payload=payload, key=odd)
    acme.ask(agent=odd, payload={**payload, "task_id": None}, key=odd + "2")
    acme.ask(agent=odd, payload=payload, key=odd + "2", reason=odd)
    acme.ask(agent=odd + "ghost", reason=odd)
    admit(acme.engine, keyless_wake(detail=odd, wake_id=odd), instant=T0)
    assert not [labels for _, labels in series() if odd in str(labels)]


@pytest.mark.parametrize(("cause", "detail"), [("unresolved", "no_caller_run"), ("by_design", None)])
def test_a_keyless_wake_is_counted_once_by_its_cause(acme, cause, detail):
    """ADM-9.2, PRO-4: the cause is the producer's word; the detail is no label."""
    with listening() as told:
        admit(acme.engine, keyless_wake("agent_error", cause, detail), instant=T0)
        admit(acme.engine, keyless_wake("agent_error", cause, detail), instant=after(minutes=1))
    assert told.moved == {
        counted(ADMISSIONS, reason="agent_error", outcome="queued"): 1,
        counted(KEYLESS, reason="agent_error", cause=cause): 1,
    }


def refuse_not_found(acme):
    return acme.ask(agent="ghost", key="k", wake_id="w")


def refuse_not_wakeable(acme):
    admin.set_agent_status(acme.engine, "ana", "pending_approval")
    return acme.ask(key="k", wake_id="w")


def refuse_paused(acme):
    acme.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
    return acme.ask(key="k", wake_id="w")


def refuse_unreadable(acme):
    acme.execute("UPDATE agents SET workspace_id = NULL")
    return acme.ask(key="k", wake_id="w")


REFUSED = {
    "agent_not_found": refuse_not_found,
    "agent_not_wakeable": refuse_not_wakeable,
    "workspace_paused": refuse_paused,
    "pause_gate_unavailable": refuse_unreadable,
}


@pytest.mark.parametrize("refusal", REFUSED)
def test_a_refusal_is_counted_once(acme, refusal):
    """ADM-9.1, ADM-9.2: by its name, and as the outcome `none`; a redelivery of it is not counted."""
    with listening() as told:
        answer = REFUSED[refusal](acme)
        assert acme.ask(key="k", wake_id="w") == answer
    assert (answer.outcome, answer.refusal) == ("none", refusal)
    assert told.moved == {
        counted(ADMISSIONS, reason="task_assigned", outcome="none"): 1,
        counted(REFUSALS, reason="task_assigned", refusal=refusal): 1,
    }


@pytest.mark.parametrize("by_name", [True, False], ids=["named", "positional"])
def test_invalid_input_is_counted_as_a_refusal(office, board, by_name):
    """ADM-9.1: `invalid`, by its reason, and nothing else moves."""
    from office_tasks import queue_run

    asked = {"agent_profile_id": "ana", "reason": "task_comment", "payload": {"x": float("nan")}}
    with listening() as told, pytest.raises(InvalidInput):
        queue_run(**asked) if by_name else queue_run(*asked.values())
    assert told.moved == {counted(REFUSALS, reason="task_comment", refusal="invalid"): 1}
    assert board.count("wakes") == 0


def test_a_merge_moves_the_admissions_only(acme):
    """ADM-9.2: a merge is an outcome; no other counter is about it."""
    acme.ask(key="k1")
    with listening() as told:
        acme.ask(after(seconds=1), key="k2")
    assert told.moved == {counted(ADMISSIONS, reason="task_assigned", outcome="coalesced"): 1}


@pytest.mark.parametrize("broken", ["count_admission", "count_keyless", "count_limit", "count_dedup", "count_refusal"])
def test_a_failing_counter_fails_no_admission(acme, monkeypatch, broken):
    """ADM-9.4: every outcome is what it would have been, and the other counters still move."""

    def fail(*_):
        raise OSError("the counters' files are gone")

    monkeypatch.setattr(telemetry, broken, fail)
    store_agent_assignments(acme, *[T0] * ASSIGNMENT_ALLOWANCE)
    with listening() as told:
        outcomes = [
            acme.ask(key="k").outcome,
            acme.ask(key="k").outcome,
            acme.ask(reason="agent_error").outcome,
            acme.ask(payload={"actor_type": "agent"}, agent="bob").outcome,
            acme.assigned(agent="bob").outcome,
            acme.ask(agent="ghost").outcome,
        ]
    assert outcomes == ["queued", "deduped", "queued", "queued", "rate_limited", "none"]
    assert len({name for name, _ in told.moved}) == 4
