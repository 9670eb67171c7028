"""A creation and the event that reports it: one occurrence, one key, one run."""

from __future__ import annotations

import pytest

from office_tasks import admin
from office_tasks.errors import Forbidden, InvalidInput, NotFound
from office_tasks.producers import bare, inbound
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.creation import create_task
from office_tasks.producers.producer import Producer
from tests.admission.telling import KEYLESS, counted, listening
from tests.support import T0, after


def create(board, mutation_id="m0", assignee="ana", at=T0, **more):
    more = {"task_id": "T1", "step_id": "start", **more}
    return create_task(board.engine, mutation_id, "acme", "a task", assignee_id=assignee, instant=at, **more)


def hear(board, *event, wake_id="w", at=None):
    """Hear a `task_created` event, a minute later unless `at` says when: its result, or why nobody was woken."""
    said = inbound.event(Producer.TASK_CREATED, *event, *[None] * (3 - len(event)))
    asked = inbound.heard(board.engine, wake_id, said)
    return asked if isinstance(asked, str) else bare.enqueue(board.engine, asked, instant=at or after(minutes=1))


def test_a_creation_with_an_assignee_owes_the_wake(acme):
    """PRO-2.2, PRO-3.7: generation 1, the event subscriber's key, no actor, and a run."""
    result = create(acme)
    assert (result["generation"], result["wakes"][0]["outcome"]) == (1, "queued")
    run = acme.run(result["runs"][0])
    assert (run["idempotency_key"], run["payload"]) == ("task_assigned:T1:ana:1", {"task_id": "T1"})
    assert acme.rows("SELECT type FROM events") == [{"type": "task_created"}]


def test_any_other_creation_commits_no_generation(acme):
    """PRO-2.2: 0, and nobody is woken."""
    result = create(acme, assignee="")
    assert (result["generation"], result["wakes"]) == (0, [])
    assert acme.rows("SELECT assignment_generation AS n FROM tasks") == [{"n": 0}]
    assert acme.count("seats") == 0


def test_an_agents_creation_carries_no_actor(acme):
    """PRO-3, PRO-3.1: only `assign_task` may ever set `actor_type: agent`."""
    result = create(acme, caller_agent_id="bob")
    assert acme.run(result["runs"][0])["payload"] == {"task_id": "T1"}
    assert acme.rows("SELECT actor_type, actor_id FROM mutations") == [{"actor_type": "agent", "actor_id": "bob"}]


def test_the_event_after_the_creation_converges(acme):
    """PRO-3.2, PRO-3.7, PRO-1.1: the identical key and one run, from wherever and however often."""
    created = create(acme)
    for n in range(3):
        heard = hear(acme, "T1", "ana", 1, wake_id=f"w{n}", at=after(hours=n + 1))
        assert (heard["outcome"], heard["key"]) == ("deduped", "task_assigned:T1:ana:1")
        assert heard["run_id"] == created["runs"][0]
    assert acme.count("runs") == 1


def test_the_event_before_the_creations_own_wake_converges(acme):
    """PRO-3.2, PRO-3.7: the other order: the event is admitted while the creation's wake is still owed."""
    acme.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
    created = create(acme)
    assert created["wakes"][0]["state"] == "owed"
    acme.execute("UPDATE pauses SET resumed_at = now()")
    heard = hear(acme, "T1", "ana", 1)
    assert (heard["outcome"], heard["key"]) == ("queued", "task_assigned:T1:ana:1")
    from office_tasks.producers.after import admit_owed, stored_wakes

    [owed] = stored_wakes(acme.engine, "m0")
    answer = admit_owed(acme.engine, owed, after(minutes=2))
    assert (answer.outcome, answer.key, str(answer.run_id)) == ("deduped", heard["key"], heard["run_id"])
    assert acme.count("runs") == 1


def test_a_second_assignment_has_its_own_event(acme):
    """PRO-1.2, PRO-3.2: the event carries its generation; a late one of the first assignment converges on the first."""
    create(acme)
    second = assign_task(acme.engine, "m1", "T1", "ana", "", after(minutes=1))
    assert hear(acme, "T1", "ana", 2, wake_id="w2", at=after(minutes=2))["run_id"] == second["runs"][0]
    assert hear(acme, "T1", "ana", 1, wake_id="w1", at=after(minutes=2))["outcome"] == "deduped"
    assert acme.count("runs") == 2


def test_generation_zero_names_no_assignment(acme):
    """PRO-2.2: it wakes nobody, and is logged at info."""
    create(acme)
    with listening() as told:
        assert hear(acme, "T1", "ana", 0) == "generation_names_no_assignment"
    assert [entry["log_level"] for entry in told.logged] == ["info"]
    assert (told.moved, acme.count("wakes")) == ({}, 1)


@pytest.mark.parametrize("event", [("T1", "bob"), ("T1", "bob", None)], ids=["absent", "null"])
def test_a_missing_generation_goes_keyless(acme, event):
    """PRO-1.3, PRO-2.2, PRO-4: absent and null are not 0: admitted with no key, unresolved, with its detail."""
    create(acme)
    with listening() as told:
        heard = hear(acme, *event)
    assert (heard["outcome"], heard["key"]) == ("queued", None)
    assert told.moved[counted(KEYLESS, reason="task_assigned", cause="unresolved")] == 1
    assert [entry["detail"] for entry in told.events("run_enqueued_keyless")] == ["event_missing_generation"]
    wake = acme.wakes()[-1]
    assert (wake["keyless_cause"], wake["keyless_detail"]) == ("unresolved", "event_missing_generation")


@pytest.mark.parametrize("assignee", [None, ""])
@pytest.mark.parametrize("generation", [None, 1])
def test_without_an_assignee_the_stored_runner_is_woken_keyless(acme, assignee, generation):
    """PRO-3: whatever generation comes with it."""
    create(acme)
    heard = hear(acme, "T1", assignee, generation)
    assert (heard["outcome"], heard["key"]) == ("queued", None)
    assert acme.runs()[-1]["agent_profile_id"] == "ana"
    assert acme.wakes()[-1]["keyless_detail"] == "event_missing_generation"


def test_the_events_wake_has_no_actor(acme):
    """PRO-3.1: whoever assigned, an event's wake is out of the allowance's scope."""
    create(acme)
    hear(acme, "T1", "bob", 7)
    assert acme.runs()[-1]["payload"] == {"task_id": "T1"}


@pytest.mark.parametrize("task", ["nowhere", "", None])
def test_an_unknown_task_is_a_logged_no_op(acme, task):
    """PRO-3.2: `none`, with nothing written."""
    with listening() as told:
        assert hear(acme, task, "ana", 1) == "unknown_task"
    assert [entry["log_level"] for entry in told.logged] == ["info"]
    assert (acme.count("wakes"), told.moved) == (0, {})
    said = bare.nobody_woken("task_assigned", "unknown_task")
    assert (said["outcome"], said["run_id"]) == ("none", None)


def test_nobody_to_wake_is_a_no_op(acme):
    """PRO-3.2: no assignee, no stored runner."""
    create(acme, assignee="")
    assert hear(acme, "T1") == "no_assignee"


@pytest.mark.parametrize(
    ("where", "why"),
    [({"step_id": "wait"}, "step_does_not_auto_start"), ({"step_id": ""}, "not_an_office_task")],
    ids=["step", "office"],
)
def test_the_event_asks_what_every_producer_asks(acme, where, why):
    """PRO-3.3, PRO-3.4: neither the creation nor the event wakes anybody."""
    assert create(acme, **where)["wakes"] == []
    assert hear(acme, "T1", "ana", 1) == why
    assert acme.count("wakes") == 0


def test_an_event_delivered_twice_answers_twice_the_same(acme):
    """ADM-6.4: keyless, and long after."""
    create(acme)
    first = hear(acme, "T1", "bob")
    assert hear(acme, "T1", "bob", at=after(days=3)) == first
    assert acme.count("runs") == 2


def test_a_creation_asks_for_permission_only_to_assign(acme):
    """PRO-3.5: `Forbidden`, nothing written; without an assignee nothing is asked."""
    admin.create_agent(acme.engine, "acme", "guest", role="guest")
    with pytest.raises(Forbidden):
        create(acme, caller_agent_id="guest")
    assert acme.count("tasks") == acme.count("mutations") == 0
    assert create(acme, assignee="", caller_agent_id="guest")["task_id"] == "T1"


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (NotFound, {"assignee": "ghost"}),
        (NotFound, {"step_id": "nowhere"}),
        (NotFound, {"project_id": "nowhere"}),
        (NotFound, {"parent_id": "nowhere"}),
        (NotFound, {"step_id": "theirs"}),
        (InvalidInput, {"assignee": "olga"}),
    ],
    ids=str,
)
def test_a_creation_that_cannot_be(acme, error, asked):
    """ADM-7.3: what is not found, or of another workspace, raises before anything is written."""
    admin.create_workspace(acme.engine, "other")
    admin.create_agent(acme.engine, "other", "olga")
    admin.create_step(acme.engine, "other", "theirs", workflow_id="flow")
    with pytest.raises(error):
        create(acme, **asked)
    assert acme.count("tasks") == acme.count("mutations") == acme.count("wakes") == 0


def test_an_id_that_is_taken_is_refused(acme):
    """ADM-7.3: another creation of the same id, not a redelivery of this one."""
    create(acme)
    with pytest.raises(InvalidInput, match="T1"):
        create(acme, "m1")
    assert acme.count("tasks") == acme.count("mutations") == 1


@pytest.mark.parametrize(
    "since",
    [
        "DELETE FROM seats",
        "DELETE FROM tasks",
        "UPDATE steps SET auto_start = false",
        "UPDATE tasks SET workflow_id = NULL",
    ],
)
def test_an_event_that_was_decided_answers_so_whatever_happened_since(office, board, since):
    """ADM-6.4, ADM-10.3: redelivered when its task would wake nobody any more, it answers what it answered."""
    from office_tasks import task_created

    create(board, at=None)
    delivered = task_created.apply(("T1",), task_id="message").get()
    board.execute(since)
    assert task_created.apply(("T1",), task_id="message").get() == delivered
    assert delivered["wake_id"] == "message"
