"""Gate 5: which wakes it looks at at all, row by row of the contract."""

from __future__ import annotations

import pytest

from office_tasks.admission import ASSIGNMENT_ALLOWANCE
from tests.admission.rows import store_agent_assignments, store_run
from tests.admission.telling import ADMISSIONS, KEYLESS, LIMIT, counted, listening
from tests.support import T0, after

OTHER_ACTORS = [None, 1, True, ["agent"], {"agent": 1}, "user", "", "Agent", "agent ", "agents"]
NO_OBJECTS = [None, [], ["agent"], "text", '{"task_id": "T1", "actor_type": "agent"}', 7, False, 1.5]
EXHAUSTING = [after(minutes=-1)] * ASSIGNMENT_ALLOWANCE
ABSENT = object()


@pytest.fixture
def exhausted(acme):
    """T1 has used up its allowance."""
    store_agent_assignments(acme, *EXHAUSTING)
    return acme


def payload_of(**fields):
    return {name: value for name, value in fields.items() if value is not ABSENT}


@pytest.mark.parametrize("reason", ["task_mentioned", "task_assigned ", "Task_assigned", "agent_error", "of_our_own"])
def test_another_reason_passes(exhausted, reason):
    """ADM-5.1 (a): other reasons pass, and move no counter of the allowance."""
    with listening() as told:
        assert exhausted.ask(reason=reason, payload=payload_of(task_id="T1", actor_type="agent")).outcome == "queued"
    assert not [name for name, _ in told.moved if name == LIMIT]


@pytest.mark.parametrize("actor", [ABSENT, *OTHER_ACTORS])
def test_any_other_actor_is_out_of_scope(exhausted, actor):
    """ADM-5.1 (b), ADM-5.8: only the string `agent` is in scope."""
    with listening() as told:
        answer = exhausted.ask(payload=payload_of(task_id="T1", actor_type=actor))
    assert (answer.outcome, answer.observed) == ("queued", None)
    assert not [name for name, _ in told.moved if name == LIMIT]


@pytest.mark.parametrize("payload", NO_OBJECTS)
def test_a_payload_that_is_no_object_is_out_of_scope(exhausted, payload):
    """ADM-5.1: it fails at (b), before the task is looked for, so it is not unattributed either."""
    with listening() as told:
        assert exhausted.ask(payload=payload).outcome == "queued"
    assert not [name for name, _ in told.moved if name == LIMIT]


@pytest.mark.parametrize("task", [ABSENT, None, "", 1, True, ["T1"], {"id": "T1"}])
def test_an_agents_wake_without_a_task_is_admitted_and_counted(exhausted, task):
    """ADM-5.1 (c): admitted, `task_unattributed`, one warning."""
    with listening() as told:
        answer = exhausted.ask(payload=payload_of(task_id=task, actor_type="agent", actor_id="bob"))
    assert answer.outcome == "queued"
    assert told.moved == {
        counted(ADMISSIONS, reason="task_assigned", outcome="queued"): 1,
        counted(KEYLESS, reason="task_assigned", cause="by_design"): 1,
        counted(LIMIT, reason="task_unattributed"): 1,
    }
    warnings = [entry["event"] for entry in told.logged if entry["log_level"] == "warning"]
    assert warnings == ["assignment_wake_unattributed"]


def test_a_wake_with_neither_actor_nor_task_moves_no_counter(exhausted):
    """ADM-5.1: the order of the conditions is contract."""
    with listening() as told:
        exhausted.ask(payload={}, key="k")
    assert told.moved == {counted(ADMISSIONS, reason="task_assigned", outcome="queued"): 1}


def test_below_the_allowance_a_wake_passes_uncounted(acme):
    """ADM-5.1: in scope, below the allowance: passes, no counter, no warning."""
    store_agent_assignments(acme, *EXHAUSTING[1:])
    with listening() as told:
        answer = acme.assigned(key="k")
    assert (answer.outcome, answer.observed) == ("queued", ASSIGNMENT_ALLOWANCE - 1)
    assert told.moved == {counted(ADMISSIONS, reason="task_assigned", outcome="queued"): 1}
    assert [entry["event"] for entry in told.logged] == ["run_queued"]


def test_at_the_allowance_a_wake_is_rate_limited(exhausted):
    """ADM-5.1: no row, no merge, `allowance_exhausted`, one warning."""
    before = exhausted.runs()
    with listening() as told:
        answer = exhausted.assigned(key="k")
    assert (answer.outcome, answer.run_id, answer.observed) == ("rate_limited", None, ASSIGNMENT_ALLOWANCE)
    assert exhausted.runs() == before
    assert told.moved == {
        counted(ADMISSIONS, reason="task_assigned", outcome="rate_limited"): 1,
        counted(LIMIT, reason="allowance_exhausted"): 1,
    }
    assert [entry["event"] for entry in told.logged] == ["assignment_wake_refused"]


def test_beyond_the_allowance_the_count_says_so(exhausted):
    """ADM-5.1: more than the allowance (concurrent over-admission) is rate-limited too, with what was observed."""
    store_agent_assignments(exhausted, T0, T0)
    answer = exhausted.assigned()
    assert (answer.outcome, answer.observed) == ("rate_limited", ASSIGNMENT_ALLOWANCE + 2)


def test_the_result_of_a_rate_limited_wake(exhausted):
    """ADM-7.2: flat, with what was observed and the allowance."""
    answer = exhausted.assigned(key="k", wake_id="w")
    assert answer.result(ASSIGNMENT_ALLOWANCE) == {
        "outcome": "rate_limited",
        "reason": "task_assigned",
        "run_id": None,
        "wake_id": "w",
        "key": "k",
        "observed": ASSIGNMENT_ALLOWANCE,
        "allowance": ASSIGNMENT_ALLOWANCE,
    }


@pytest.mark.parametrize(
    ("reason", "payload"),
    [
        ("task_mentioned", {"task_id": "T1", "actor_type": "agent"}),
        ("task_assigned", {"task_id": "T2", "actor_type": "agent"}),
        ("task_assigned", {"task_id": "t1", "actor_type": "agent"}),
        ("task_assigned", {"task_id": ["T1"], "actor_type": "agent"}),
        ("task_assigned", {"actor_type": "agent"}),
        ("task_assigned", {"task_id": "T1", "actor_type": "user"}),
        ("task_assigned", {"task_id": "T1", "actor_type": ["agent"]}),
        ("task_assigned", {"task_id": "T1"}),
        ("task_assigned", [{"task_id": "T1", "actor_type": "agent"}]),
        ("task_assigned", '{"task_id": "T1", "actor_type": "agent"}'),
    ],
)
def test_what_is_not_counted(acme, reason, payload):
    """ADM-5.2: only rows with that reason, that task as a JSON string, and the actor `agent` are counted."""
    store_run(acme, T0, reason=reason, payload=payload, status="finished")
    assert acme.assigned().observed == 0


def test_a_number_is_not_the_string_that_looks_like_it(acme):
    """ADM-5.2: rows of the number 42 do not count against the task "42"."""
    for _ in EXHAUSTING:
        store_run(acme, T0, payload={"task_id": 42, "actor_type": "agent"}, status="finished")
    answer = acme.assigned(task="42")
    assert (answer.outcome, answer.observed) == ("queued", 0)
