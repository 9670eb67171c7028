"""Template seats: a step's, and so on every task that stands there."""

from __future__ import annotations

import pytest

from db.slate import slate
from office_tasks import admin
from office_tasks.errors import InvalidInput, NotFound
from office_tasks.producers.creation import create_task
from office_tasks.producers.participants import add_participant, claim_seat, remove_participant


@pytest.fixture
def tasks(board):
    """Two tasks at one step, a third at another, and an agent of another workspace."""
    for task, step in (("T1", "start"), ("T2", "start"), ("T3", "wait")):
        create_task(board.engine, f"m-{task}", "acme", task, task_id=task, step_id=step)
    admin.create_workspace(board.engine, "other")
    admin.create_agent(board.engine, "other", "zed")
    return board


def seated(board, task):
    with board.engine.connect() as connection:
        return [tuple(seat) for seat in slate(connection, task)]


def test_a_template_seat_is_on_every_task_at_its_step(tasks):
    """SES-2.2: and on no other; given and taken away once."""
    assert admin.add_template_seat(tasks.engine, "start", "reviewer", "ana") is True
    assert admin.add_template_seat(tasks.engine, "start", "reviewer", "ana") is False
    assert seated(tasks, "T1") == seated(tasks, "T2") == [("reviewer", "ana", True)]
    assert seated(tasks, "T3") == []
    assert admin.remove_template_seat(tasks.engine, "start", "reviewer", "ana") is True
    assert admin.remove_template_seat(tasks.engine, "start", "reviewer", "ana") is False
    assert seated(tasks, "T1") == []


def test_a_task_s_own_seat_takes_precedence_and_stays(tasks):
    """SES-2.2: of the same role and agent there is one seat, the task's own; the template's going leaves it."""
    admin.add_template_seat(tasks.engine, "start", "reviewer", "ana")
    add_participant(tasks.engine, "m1", "T1", "ana", "reviewer")
    assert seated(tasks, "T1") == [("reviewer", "ana", False)]
    assert seated(tasks, "T2") == [("reviewer", "ana", True)]
    admin.remove_template_seat(tasks.engine, "start", "reviewer", "ana")
    assert (seated(tasks, "T1"), seated(tasks, "T2")) == ([("reviewer", "ana", False)], [])


def test_one_task_cannot_lose_a_template_seat(tasks):
    """SES-1.1: it is the step's: removed or claimed on a task it is not there, and nothing is written."""
    admin.add_template_seat(tasks.engine, "start", "reviewer", "ana")
    with pytest.raises(NotFound, match="no reviewer seat of its own"):
        remove_participant(tasks.engine, "m1", "T1", "ana", "reviewer")
    with pytest.raises(NotFound, match="no reviewer seat of its own"):
        claim_seat(tasks.engine, "m2", "T1", "reviewer", "ana", "bob")
    assert seated(tasks, "T1") == [("reviewer", "ana", True)]
    assert tasks.rows("SELECT id FROM mutations WHERE id IN ('m1', 'm2')") == []


def test_the_seat_of_an_agent_that_is_gone_can_be_removed(tasks):
    """SES-2.4: the agent need not exist."""
    admin.add_template_seat(tasks.engine, "start", "watcher", "ana")
    tasks.execute("DELETE FROM agents WHERE id = 'ana'")
    assert admin.remove_template_seat(tasks.engine, "start", "watcher", "ana") is True


@pytest.mark.parametrize(
    ("seat", "error", "sentence"),
    [
        (("start", "boss", "ana"), InvalidInput, "role: must be one of runner, reviewer, .* not 'boss'"),
        (("start", ["reviewer"], "ana"), InvalidInput, "role: must be one of"),
        (("start", "runner", "ana"), InvalidInput, "role: a step's runner is its primary agent"),
        (("nowhere", "reviewer", "ana"), NotFound, "there is no step 'nowhere'"),
        (("start", "reviewer", "nobody"), NotFound, "there is no agent 'nobody'"),
        (("start", "reviewer", "zed"), InvalidInput, "agent 'zed' is not of workspace 'acme'"),
        ((" ", "reviewer", "ana"), InvalidInput, "step_id: must not be empty"),
        (("start", "reviewer", "x" * 256), InvalidInput, "agent_profile_id: is 256 bytes"),
    ],
)
def test_what_is_no_template_seat_is_refused(tasks, seat, error, sentence):
    """SES-2.2: each by a typed error that names it; nothing is written."""
    with pytest.raises(error, match=sentence):
        admin.add_template_seat(tasks.engine, *seat)
    assert tasks.count("seats") == 0


@pytest.mark.parametrize(
    ("seat", "error"), [(("start", "boss", "ana"), InvalidInput), (("nowhere", "reviewer", "ana"), NotFound)]
)
def test_what_cannot_be_removed_is_refused(tasks, seat, error):
    with pytest.raises(error):
        admin.remove_template_seat(tasks.engine, *seat)
