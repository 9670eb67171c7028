"""The decision log: each event's exact name, level and fields."""

from __future__ import annotations

import pytest
import structlog

from office_tasks.admission import ASSIGNMENT_ALLOWANCE, Keyless, admit, wake
from tests.admission.rows import store_agent_assignments
from tests.admission.telling import listening
from tests.support import T0, Board, after

SECRET = "a word from a payload"


def heard(told, event):
    """Return the one entry of that event: its level and its fields."""
    [entry] = told.events(event)
    return entry.pop("log_level"), {name: value for name, value in entry.items() if name != "event"}


def test_run_queued(acme):
    """ADM-9.3: `run_queued`, info: run_id, agent_profile_id, reason."""
    with listening() as told:
        answer = acme.ask(key="k", payload={"task_id": "T1", "body": SECRET})
    assert len(told.logged) == 1
    fields = {"run_id": str(answer.run_id), "agent_profile_id": "ana", "reason": "task_assigned"}
    assert heard(told, "run_queued") == ("info", fields)


def test_assignment_wake_refused(acme):
    """ADM-9.3: `assignment_wake_refused`, warning: task, agent, actor, observed, allowance."""
    store_agent_assignments(acme, *[T0] * ASSIGNMENT_ALLOWANCE)
    with listening() as told:
        acme.assigned(key="k")
    assert len(told.logged) == 1
    assert heard(told, "assignment_wake_refused") == (
        "warning",
        {
            "task_id": "T1",
            "agent_profile_id": "ana",
            "actor_id": "bob",
            "observed": ASSIGNMENT_ALLOWANCE,
            "allowance": ASSIGNMENT_ALLOWANCE,
        },
    )


@pytest.mark.parametrize("actor", [{"actor_id": "bob"}, {}, {"actor_id": ""}, {"actor_id": 7}])
def test_assignment_wake_unattributed(acme, actor):
    """ADM-9.3: `assignment_wake_unattributed`, warning: reason, allowance, the actor if present, and no task."""
    with listening() as told:
        acme.ask(key="k", payload={"actor_type": "agent", **actor})
    known = {"actor_id": "bob"} if actor == {"actor_id": "bob"} else {}
    assert len(told.logged) == 2
    assert heard(told, "assignment_wake_unattributed") == (
        "warning",
        {"reason": "task_assigned", "allowance": ASSIGNMENT_ALLOWANCE, **known},
    )


def test_assignment_count_failed(board):
    """ADM-9.3, ADM-5.1: `assignment_count_failed`, warning: task, agent, actor, allowance, error, nothing observed."""
    # No other gate reads this column, so the count fails, and only it.
    board.execute("ALTER TABLE runs RENAME COLUMN actor_type TO actor_kind")
    with listening() as told:
        answer = board.assigned(key="k")
    assert (answer.outcome, answer.observed) == ("queued", None)
    level, fields = heard(told, "assignment_count_failed")
    assert fields.pop("error").startswith("42703")
    assert (level, fields) == (
        "warning",
        {"task_id": "T1", "agent_profile_id": "ana", "actor_id": "bob", "allowance": ASSIGNMENT_ALLOWANCE},
    )


def test_run_enqueued_keyless(acme):
    """ADM-9.3, PRO-4: `run_enqueued_keyless`, info, for `unresolved` only: reason, cause, detail."""
    by_design, unresolved = Keyless("by_design"), Keyless("unresolved", "zero_step_transition")
    asked = {"agent_profile_id": "ana", "payload": {}, "key": None, "producer": "test"}
    with listening() as told:
        admit(acme.engine, wake(wake_id="w1", reason="a", keyless=by_design, **asked), instant=T0)
        admit(acme.engine, wake(wake_id="w2", reason="b", keyless=unresolved, **asked), instant=T0)
    assert [entry["event"] for entry in told.logged] == ["run_queued", "run_queued", "run_enqueued_keyless"]
    assert heard(told, "run_enqueued_keyless") == (
        "info",
        {"reason": "b", "cause": "unresolved", "detail": "zero_step_transition"},
    )


@pytest.mark.parametrize("workspace", [None, "nowhere"])
def test_pause_gate_unavailable(acme, workspace):
    """ADM-9.3: `pause_gate_unavailable`, warning: the agent, its workspace, and what went wrong."""
    acme.execute("UPDATE agents SET workspace_id = :workspace", workspace=workspace)
    with listening() as told:
        acme.ask(key="k")
    assert len(told.logged) == 1
    level, fields = heard(told, "pause_gate_unavailable")
    assert (level, set(fields)) == ("warning", {"agent_profile_id", "workspace_id", "error"})
    assert (fields["agent_profile_id"], fields["workspace_id"]) == ("ana", workspace)
    assert fields["error"]


def test_what_the_counters_say_alone_is_not_logged(acme):
    """ADM-9.3: a merge and a refusal by gate 1 or by a pause have no event of their own."""
    acme.ask(key="k")
    with listening() as told:
        acme.ask(after(seconds=1), key="k2")
        acme.ask(agent="ghost", key="k3")
        acme.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
        acme.ask(key="k4")
    assert told.logged == []


def test_payloads_are_never_logged(acme):
    """ADM-9.3: whatever the outcome."""
    store_agent_assignments(acme, *[T0] * ASSIGNMENT_ALLOWANCE)
    payload = {"task_id": "T1", "actor_type": "agent", "body": SECRET}
    with listening() as told:
        acme.ask(payload=payload, key="k")
        acme.ask(payload={**payload, "task_id": 7}, key="k2")
        acme.ask(payload=payload, key="k2")
        acme.ask(payload=payload, agent="ghost")
    assert len(told.logged) == 4
    assert SECRET not in str(told.logged)


@pytest.fixture
def broken_log():
    """A log that fails whatever it is told."""

    def fail(*_):
        raise OSError("no space left on device")

    before = structlog.get_config()
    structlog.configure(processors=[fail])
    yield
    structlog.configure(**before)


def test_a_failing_log_fails_no_admission(acme, broken_log):
    """ADM-9.4: every outcome is what it would have been."""
    store_agent_assignments(acme, *[T0] * ASSIGNMENT_ALLOWANCE)
    with pytest.raises(OSError, match="no space"):
        structlog.stdlib.get_logger("office").info("is it broken?")
    outcomes = [
        acme.ask(key="k").outcome,
        acme.ask(key="k").outcome,
        admit(acme.engine, Board.wake(reason="other"), instant=T0).outcome,
        acme.ask(payload={"actor_type": "agent"}, agent="bob").outcome,
        acme.assigned(agent="bob").outcome,
        acme.ask(agent="ghost").outcome,
    ]
    assert outcomes == ["queued", "deduped", "queued", "queued", "rate_limited", "none"]
