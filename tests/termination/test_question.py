"""The question: does the agent still hold a capacity on that task?"""

from __future__ import annotations

import random
import uuid

import pytest

from db import board as boards
from db import capacity, slate, unstarted, work
from db.engine import autocommit
from db.states import SEAT_ROLES
from office_tasks.producers.producer import Producer
from tests.support import after

LOW, HIGH = (uuid.UUID(int=n) for n in (1, 2))
NOBODY = None
AGENTS = ("ana", "bob", "cleo")


@pytest.fixture
def put(stage):
    """Return a function that puts a seat where a test wants it: `put("ana", step="wait", minutes=3)`."""

    def seat(agent, role="runner", task="T1", step="start", seat_id=None, **delta):
        stage.board.execute(
            "INSERT INTO seats (id, task_id, step_id, role, agent_profile_id, created_at) "
            "VALUES (:id, :task, :step, :role, :agent, :at)",
            id=seat_id or uuid.uuid4(), task=task, step=step, role=role, agent=agent, at=after(**delta),
        )  # fmt: skip

    return seat


@pytest.fixture
def stand(stage):
    """Return a function that puts a task on a step, or on none; every step lets the sweep look at its tasks."""
    stage.board.execute("UPDATE steps SET auto_start = true")

    def task(step="start", task_id="T1"):
        stage.board.execute(
            "INSERT INTO tasks (id, workspace_id, workflow_id, step_id, title) "
            "VALUES (:id, 'acme', 'flow', :step, 'a task')",
            id=task_id, step=step,
        )  # fmt: skip

    return task


@pytest.fixture
def held(stage):
    """Return a function that asks the question."""

    def ask(agent="ana", task="T1"):
        with autocommit(stage.engine) as connection:
            return capacity.retained(connection, task, agent)

    return ask


@pytest.fixture
def runners(stage):
    """Return a function that tells who is the runner in the eyes of each reader; one answer when they agree."""

    def ask(task="T1"):
        with stage.engine.connect() as connection:
            asked = [who for who in AGENTS if capacity.retained(connection, task, who) == "runner"]
            swept = dict(unstarted.take(connection, 10).turns)
            return {
                boards.standing(connection, task).runner_id,
                work.seen(connection, "ana", task)[1].runner_id,
                swept.get(task),
                *(asked or [NOBODY]),
            }

    return ask


# By name: where the task stands, its seats, and who is to be its runner.
PROJECTIONS = {
    "the seat at the current step": ("start", [("ana", {})], "ana"),
    "the seat before the step's primary agent": ("led", [("ana", {"step": "led"})], "ana"),
    "the seat before a newer one elsewhere": ("start", [("ana", {}), ("bob", {"step": "wait", "minutes": 9})], "ana"),
    "the primary agent before any other seat": ("led", [("ana", {"step": "start", "minutes": 9})], "cleo"),
    "the primary agent before an empty seat": ("led", [("", {"step": "led"})], "cleo"),
    "the newest seat anywhere": (
        "wait", [("ana", {"step": "start", "minutes": 1}), ("bob", {"step": "led", "minutes": 2})], "bob",
    ),
    "the newest seat, stored first": (
        "wait", [("bob", {"step": "led", "minutes": 2}), ("ana", {"step": "start", "minutes": 1})], "bob",
    ),
    "of two as new the greater id": (
        "wait", [("ana", {"step": "start", "seat_id": HIGH}), ("bob", {"step": "led", "seat_id": LOW})], "ana",
    ),
    "of two as new the greater id, stored last": (
        "wait", [("bob", {"step": "led", "seat_id": LOW}), ("ana", {"step": "start", "seat_id": HIGH})], "ana",
    ),
    "never an empty one elsewhere": (
        "wait", [("ana", {"step": "start"}), ("", {"step": "led", "minutes": 9})], "ana",
    ),
    "an older seat past an empty primary agent": ("blank", [("ana", {"step": "start"})], "ana"),
    "no other role": ("start", [("ana", {"role": "reviewer"}), ("bob", {"role": "approver"})], NOBODY),
    "no template": ("start", [("ana", {"task": None})], NOBODY),
    "without a step, the seat without a step": (
        None, [("ana", {"step": None}), ("bob", {"step": "start", "minutes": 9})], "ana",
    ),
    "without a step, else the newest seat": (None, [("ana", {}), ("bob", {"step": "wait", "minutes": 9})], "bob"),
    "on a step that is not there, its seat": ("gone", [("ana", {"step": "gone"})], "ana"),
    "on a step that is not there, else the newest": ("gone", [("ana", {"step": "start"})], "ana"),
    "nobody": ("start", [], NOBODY),
    "nobody but empty ones": ("start", [("", {}), ("", {"step": "wait"})], NOBODY),
}  # fmt: skip


@pytest.mark.parametrize("case", PROJECTIONS)
def test_who_drives_a_task(stage, stand, put, runners, case):
    """SES-2.1: three tiers, in that order; the mutations, the sweep, the execution and the question agree."""
    stage.board.execute(
        "INSERT INTO steps (id, workspace_id, workflow_id, name, primary_agent_id, auto_start) "
        "VALUES ('blank', 'acme', 'flow', '', '', true)"
    )
    step, seats, runner = PROJECTIONS[case]
    stand(step)
    for agent, where in seats:
        put(agent, **where)
    assert runners() == {runner}


def test_the_runner_of_another_task_is_none_of_this(stage, stand, put, held):
    """SES-2.1, C21: a seat on another task does not count here, wherever both stand."""
    stand()
    stand(task_id="T2")
    put("ana", task="T2")
    put("ana", "reviewer", task="T2")
    assert (held(task="T1"), held(task="T2")) == (None, "runner")


def test_an_event_sees_the_same_runner(stage):
    """SES-2.1: the event subscriber falls back to it when a creation names nobody."""
    stage.create()
    stage.enter(step="led")
    stage.board.execute("UPDATE steps SET auto_start = true")
    did = stage.hear(Producer.TASK_CREATED)
    assert [wake["agent_profile_id"] for wake in did.wakes] == ["cleo"]


@pytest.mark.parametrize("role", SEAT_ROLES)
@pytest.mark.parametrize("task", ["T1", None], ids=["own", "template"])
def test_every_role_counts(stand, put, held, role, task):
    """SES-2.2: the task's own seats and its step's templates; the runner's template is a seat like any other."""
    stand()
    put("ana", role, task=task)
    assert held() == ("runner" if (role, task) == ("runner", "T1") else "seat")
    assert held("bob") is None


@pytest.mark.parametrize("first", ["T1", None])
def test_a_row_of_the_task_comes_before_a_template(stage, stand, put, held, first):
    """SES-2.2: the same role and agent twice is one seat, the task's own; another agent's template stays one."""
    stand()
    for task in (first, None if first else "T1"):
        put("ana", "reviewer", task=task)
    put("ana", "approver", task=None)
    put("bob", "reviewer", task=None)
    with autocommit(stage.engine) as connection:
        seated = [tuple(one) for one in slate.slate(connection, "T1")]
    assert seated == [("approver", "ana", True), ("reviewer", "ana", False), ("reviewer", "bob", True)]
    assert held() == "seat"


def test_a_template_of_the_same_seat_keeps_what_the_task_took_away(stage):
    """SES-2.2: without the task's own row the template's is effective again, and keeps the session."""
    stage.create()
    session = stage.converse()
    stage.seat("reviewer", "ana", task=None)
    stage.add("reviewer")
    before = stage.session(session)
    assert stage.remove("reviewer").result["session"] == {"terminated": False, "retained": "seat"}
    assert stage.session(session) == before


def test_a_task_without_a_step_has_an_empty_slate(stage, stand, put, held):
    """SES-2.2: seats that stand at no step, or at any, are no capacity there; the runner's is."""
    stand(step=None)
    put("ana", "reviewer", step=None)
    put("ana", "approver", step="start")
    put("ana", "watcher", task=None, step="start")
    with autocommit(stage.engine) as connection:
        assert slate.slate(connection, "T1") == []
    assert held() is None
    put("ana", step=None)
    assert held() == "runner"


def test_an_empty_seat_is_nobodys(stage, stand, put, held):
    """SES-2.2, SES-1.6: nobody is seated on it, and nobody asks for nobody."""
    stand()
    put("", "reviewer")
    with autocommit(stage.engine) as connection:
        assert slate.slate(connection, "T1") == []
    assert held("") is None


@pytest.mark.parametrize("task", ["T1", None], ids=["own", "template"])
def test_a_seat_that_the_task_left_behind(stage, held, task):
    """SES-2.3: it counts until the task moves on, not while that stands elsewhere, and again when it is back."""
    stage.create()
    stage.seat("reviewer", "ana", task=task)
    answers = [held()]
    for step in ("wait", "start"):
        stage.enter(step=step)
        answers.append(held())
    assert answers == ["seat", None, "seat"]


def test_a_task_that_moved_away_ends_the_session_with_the_last_seat_there(stage):
    """SES-2.3: the reviewer's seat at the step before does not keep what losing the approver's here ends."""
    stage.create()
    session = stage.converse()
    stage.add("reviewer")
    stage.enter(step="wait")
    stage.add("approver")
    assert stage.remove("approver").result["session"]["terminated"]
    assert stage.session(session)["state"] == "completed"
    assert stage.seats() == [("T1", "start", "reviewer")]


def test_a_runner_whose_seat_stayed_behind_still_drives(stage, held):
    """SES-2.1, SES-2.3: the move takes no runner away while nobody else drives the task; a step's own agent does."""
    stage.create(assignee="ana")
    stage.enter(step="wait")
    assert (held("ana"), held("cleo")) == ("runner", None)
    stage.enter(step="led")
    assert (held("ana"), held("cleo")) == (None, "runner")


@pytest.mark.parametrize("role", ["runner", "reviewer"])
def test_the_agent_need_not_exist_any_more(stage, held, role):
    """SES-2.4: identifiers are compared: a deleted agent's seat still counts, and one that never was holds none."""
    stage.create()
    stage.seat(role, "ana")
    stage.board.execute("DELETE FROM agents WHERE id = 'ana'")
    assert held("ana") == ("runner" if role == "runner" else "seat")
    assert held("ghost") is None


def test_identifiers_are_compared_as_they_are(stand, put, held):
    """SES-2.4: no case, no blank and no pattern makes one agent another."""
    stand()
    put("ana", "reviewer")
    assert [held(other) for other in ("Ana", "ana ", "an_", "an%", "%", "änä")] == [None] * 6


@pytest.mark.parametrize("seed", range(8))
def test_how_many_and_in_which_order_changes_nothing(stand, put, held, seed):
    """SES-2.5: any subset of its seats, stored in any order among other people's: held or not is all there is."""
    shuffled = random.Random(seed)
    places = [(role, task) for role in SEAT_ROLES for task in ("T1", None)]
    mine = shuffled.sample(places, shuffled.randint(0, len(places)))
    others = [("reviewer", "bob"), ("approver", "bob"), ("reviewer", "cleo"), ("watcher", "cleo")]
    rows = [("ana", *place) for place in mine] + [(agent, role, None) for role, agent in others]
    stand()
    for agent, role, task in shuffled.sample(rows, len(rows)):
        put(agent, role, task=task)
    assert held() == (None if not mine else "runner" if ("runner", "T1") in mine else "seat")


def test_a_task_that_is_not_there_is_no_answer(stage, held):
    """SES-1.5: neither yes nor no."""
    with pytest.raises(capacity.Unresolved):
        held(task="nowhere")
