"""Changing the assignee: what it may, what it commits, and what it wakes."""

from __future__ import annotations

import pytest

from office_tasks import admin
from office_tasks.errors import Forbidden, InvalidInput, NotFound
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.creation import create_task
from tests.admission.telling import KEYLESS, listening
from tests.support import T0, after

TABLES = ("runs", "wakes", "mutations", "events", "seats")


@pytest.fixture
def t1(acme):
    """The office with task T1, unassigned, on the auto-starting step."""
    create_task(acme.engine, "m0", "acme", "a task", task_id="T1", step_id="start", instant=T0)
    return acme


def reassign(board, n, assignee, caller="", minutes=None):
    """Assign T1 in the message `m<n>`, by default `n` minutes after T0."""
    at = after(minutes=n if minutes is None else minutes)
    return assign_task(board.engine, f"m{n}", "T1", assignee, caller, at)


def task_of(board):
    return board.rows("SELECT * FROM tasks WHERE id = 'T1'")[0]


def runners(board):
    return [row["agent_profile_id"] for row in board.rows("SELECT * FROM seats WHERE role = 'runner'")]


def test_an_assignment_commits_everything_at_once(t1):
    """PRO-3.5, PRO-6.1: the seat, the generation, the owed wake, the event and the mutation."""
    result = reassign(t1, 1, "ana", "bob")
    [wake] = t1.wakes()
    assert result == {
        "mutation_id": "m1",
        "task_id": "T1",
        "assignee_id": "ana",
        "generation": 1,
        "previous_runner_id": None,
        "cancelled_retries": [],
        "wakes": [{
            "wake_id": "m1#1", "agent_profile_id": "ana", "reason": "task_assigned",
            "state": "decided", "outcome": "queued", "refusal": None, "run_id": str(wake["run_id"]),
        }],
        "runs": [str(wake["run_id"])],
    }  # fmt: skip
    assert (runners(t1), task_of(t1)["assignment_generation"]) == (["ana"], 1)
    assert (wake["mutation_id"], wake["generation"], wake["producer"]) == ("m1", 1, "assign_task")
    [mutation] = t1.rows("SELECT * FROM mutations WHERE id = 'm1'")
    assert (mutation["kind"], mutation["generation"]) == ("assign_task", 1)
    assert (mutation["actor_type"], mutation["actor_id"]) == ("agent", "bob")
    assert mutation["result"] == result
    assert t1.rows("SELECT task_id, type, changed FROM events WHERE mutation_id = 'm1'") == [
        {"task_id": "T1", "type": "task_assignee_changed", "changed": ["assignee"]}
    ]


@pytest.mark.parametrize(
    ("caller", "actor"),
    [("", {"actor_type": "user"}), ("bob", {"actor_type": "agent", "actor_id": "bob"})],
    ids=["user", "agent"],
)
def test_the_actor_stands_in_the_payload(t1, caller, actor):
    """PRO-3.1, ADM-5.8: `agent` and its id, or `user`."""
    [run_id] = reassign(t1, 1, "ana", caller)["runs"]
    assert t1.run(run_id)["payload"] == {"task_id": "T1", **actor}


def test_the_key_is_that_of_the_committed_generation(t1):
    """PRO-1.1, PRO-1.2, PRO-2.1: the key carries the generation that its own transaction committed."""
    for n, agent in enumerate(["ana", "bob", "ana"], 1):
        [run_id] = reassign(t1, n, agent)["runs"]
        assert t1.run(run_id)["idempotency_key"] == f"task_assigned:T1:{agent}:{n}"


def test_the_same_agent_again_is_woken_again(t1):
    """PRO-2.1: the operator asks for the work again: the generation is bumped and another run is queued."""
    results = [reassign(t1, n, "ana") for n in (1, 2)]
    assert [result["generation"] for result in results] == [1, 2]
    assert [result["wakes"][0]["outcome"] for result in results] == ["queued", "queued"]
    assert results[1]["previous_runner_id"] == "ana"
    assert runners(t1) == ["ana"]


def test_there_and_back_wakes_again(t1):
    """PRO-2.5: A to B to A wakes A again at the third."""
    outcomes = [reassign(t1, n, agent)["wakes"][0]["outcome"] for n, agent in enumerate(["ana", "bob", "ana"], 1)]
    assert outcomes == ["queued", "queued", "queued"]
    assert [run["agent_profile_id"] for run in t1.runs()] == ["ana", "bob", "ana"]


def test_away_and_back_wakes_again(t1):
    """PRO-2.5: A to nobody to A too; every one of the three bumps the generation."""
    results = [reassign(t1, n, agent) for n, agent in enumerate(["ana", "", "ana"], 1)]
    assert [result["generation"] for result in results] == [1, 2, 3]
    assert [[wake["outcome"] for wake in result["wakes"]] for result in results] == [["queued"], [], ["queued"]]


def test_the_same_agent_after_a_day_is_queued(t1):
    """PRO-2.5: A again after 24 h is `queued`, not `deduped`."""
    reassign(t1, 1, "ana")
    result = reassign(t1, 2, "ana", minutes=24 * 60 + 10)
    assert result["wakes"][0]["outcome"] == "queued"


def test_an_unassignment_leaves_no_runner_anywhere(t1):
    """PRO-2.6, ADM-5.10: the runner seats at every step go, the generation is bumped, and nobody is woken."""
    reassign(t1, 1, "ana")
    t1.execute(
        "INSERT INTO seats (id, task_id, step_id, role, agent_profile_id) "
        "VALUES (gen_random_uuid(), 'T1', 'wait', 'runner', 'bob'), "
        "(gen_random_uuid(), 'T1', 'start', 'reviewer', 'bob')"
    )
    result = reassign(t1, 2, "")
    assert (result["wakes"], result["runs"], result["generation"]) == ([], [], 2)
    assert (result["assignee_id"], result["previous_runner_id"]) == (None, "ana")
    assert runners(t1) == []
    assert t1.count("seats") == 1


def test_an_unassignment_of_nobody_bumps_too(t1):
    """PRO-2.1: every committed assignment write does."""
    assert [reassign(t1, n, "")["generation"] for n in (1, 2)] == [1, 2]


@pytest.fixture
def refused(t1):
    """Assert that an assignment raises that error and leaves every row as it was."""

    def check(error, task="T1", assignee="ana", caller=""):
        before = ({table: t1.count(table) for table in TABLES}, task_of(t1))
        with pytest.raises(error):
            assign_task(t1.engine, "m1", task, assignee, caller, after(minutes=1))
        assert ({table: t1.count(table) for table in TABLES}, task_of(t1)) == before

    return check


def test_a_caller_without_the_permission_is_forbidden(t1, refused):
    """PRO-3.5, ADM-7.3: nothing is written, whoever the caller is and whatever it unassigns."""
    admin.create_agent(t1.engine, "acme", "guest", role="guest")
    admin.create_agent(t1.engine, "acme", "bound", role="ceo", permissions=["approve"])
    for caller in ("guest", "bound", "ghost"):
        refused(Forbidden, caller=caller)
        refused(Forbidden, assignee="", caller=caller)


def test_a_forbidden_caller_learns_nothing_of_the_task(refused):
    """PRO-3.5: the permission comes first: before whether the task exists, and before whether the assignee does."""
    refused(Forbidden, task="nowhere", caller="ghost")
    refused(Forbidden, assignee="nobody", caller="ghost")


def test_own_permissions_override_the_roles(t1):
    """PRO-3.5: an agent of a role that may not assign may, when it was given the permission itself."""
    admin.create_agent(t1.engine, "acme", "trusted", role="guest", permissions=["assign"])
    assert reassign(t1, 1, "ana", "trusted")["wakes"][0]["outcome"] == "queued"


def test_what_is_not_found(refused):
    """ADM-7.3: an unknown task or assignee raises before anything is written."""
    refused(NotFound, task="nowhere")
    refused(NotFound, assignee="ghost")


def test_an_assignee_of_another_workspace_is_refused(t1, refused):
    """ADM-7.3: nothing is written."""
    admin.create_workspace(t1.engine, "other")
    admin.create_agent(t1.engine, "other", "olga")
    refused(InvalidInput, assignee="olga")


@pytest.mark.parametrize(
    ("arrange", "refusal", "state"),
    [
        ("UPDATE agents SET status = 'stopped' WHERE id = 'ana'", "agent_not_wakeable", "decided"),
        ("INSERT INTO pauses (workspace_id) VALUES ('acme')", "workspace_paused", "owed"),
    ],
    ids=["gate 1", "gate 2"],
)
def test_a_refused_wake_leaves_the_assignment_standing(t1, arrange, refusal, state):
    """ADM-7.3, PRO-6.4: the mutation succeeds; gate 1 closes the wake, and a pause leaves it owed."""
    t1.execute(arrange)
    result = reassign(t1, 1, "ana")
    [wake] = result["wakes"]
    assert (wake["outcome"], wake["refusal"], wake["state"]) == ("none", refusal, state)
    assert result["runs"] == []
    assert (runners(t1), t1.wakes()[0]["state"]) == (["ana"], state)


@pytest.mark.parametrize("where", [{"step_id": "wait"}, {"step_id": "aside"}, {}], ids=["wait", "aside", "no workflow"])
def test_nobody_is_woken_on_a_task_that_does_not_ask_for_it(acme, where):
    """PRO-3.3, PRO-3.4: a step that does not auto-start, a task that is no office task: assigned, nobody woken."""
    admin.create_step(acme.engine, "acme", "aside", workflow_id="elsewhere", auto_start=True)
    create_task(acme.engine, "m0", "acme", "a task", task_id="T1", instant=T0, **where)
    with listening() as told:
        result = reassign(acme, 1, "ana")
    assert (result["wakes"], result["generation"], runners(acme)) == ([], 1, ["ana"])
    assert [(entry["event"], entry["log_level"]) for entry in told.logged] == [("wake_withheld", "info")]
    assert told.moved == {}
    assert acme.count("wakes") == acme.count("runs") == 0


def test_a_task_without_a_step_is_eligible(acme):
    """PRO-3.3, PRO-3.4: in a project, stepless."""
    admin.create_project(acme.engine, "acme", "p1")
    create_task(acme.engine, "m0", "acme", "a task", task_id="T1", project_id="p1", instant=T0)
    assert reassign(acme, 1, "ana")["wakes"][0]["outcome"] == "queued"


def test_a_step_that_cannot_be_read_is_eligible(t1):
    """PRO-3.3: with a warning."""
    t1.execute("DELETE FROM steps WHERE id = 'start'")
    with listening() as told:
        assert reassign(t1, 1, "ana")["wakes"][0]["outcome"] == "queued"
    assert [entry["log_level"] for entry in told.events("step_unreadable")] == ["warning"]


def test_an_assignment_is_never_keyless(t1):
    """PRO-3: its key is a generation's, so the keyless counter does not move."""
    with listening() as told:
        reassign(t1, 1, "ana")
    assert not [name for name, _ in told.moved if name == KEYLESS]
