"""Who may change seats, and what cannot be accepted: a typed error, and nothing written."""

from __future__ import annotations

import pytest

from office_tasks import admin, claim_seat, delete_agent, remove_participant
from office_tasks.errors import Forbidden, InvalidInput, NotFound
from tests.admission.telling import listening
from tests.db.plans import statements

ACTS = {
    "assign": lambda stage, by: stage.assign(agent="bob", by=by),
    "add": lambda stage, by: stage.add("watcher", "bob", by=by),
    "remove": lambda stage, by: stage.remove("reviewer", by=by),
    "remove the runner": lambda stage, by: stage.remove("runner", by=by),
    "claim": lambda stage, by: stage.claim("reviewer", by=by),
}
NEEDS = {"assign": "assign"}
# By name: a caller's role and own permissions, and what it may do.
CALLERS = {
    "a ceo": ("ceo", None, {"assign", "approve"}),
    "a worker": ("worker", None, {"assign"}),
    "a guest": ("guest", None, set()),
    "a reviewer": ("reviewer", None, set()),
    "a CEO, which is another role": ("CEO", None, set()),
    "a ceo without permissions": ("ceo", [], set()),
    "a ceo that may only assign": ("ceo", ["assign"], {"assign"}),
    "a worker that may only approve": ("worker", ["approve"], {"approve"}),
    "a guest that may both": ("guest", ["approve", "assign"], {"assign", "approve"}),
    "a worker with odd permissions": ("worker", ["Assign", "approve ", "*", ""], set()),
}


@pytest.fixture
def seated(stage):
    """Let `ana` drive and review T1, in a conversation; another workspace has `olga`, who is its ceo."""
    stage.create(assignee="ana")
    stage.seat("reviewer", "ana")
    stage.converse()
    admin.create_workspace(stage.engine, "other")
    admin.create_agent(stage.engine, "other", "olga", role="ceo")
    return stage


@pytest.fixture
def refused(seated):
    """Return a function that asserts that an act raises that very error, and leaves every row of every table."""

    def check(error, act, match=None):
        before = seated.everything()
        with pytest.raises(error, match=match) as caught, listening() as told:
            act(seated)
        assert type(caught.value) is error
        assert seated.everything() == before
        assert told.moved == {}

    return check


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("act", ACTS)
def test_what_a_caller_may_do(seated, refused, caller, act):
    """SES-5: assigning needs *assign*, the rest *approve*; an agent's own permissions override its role's."""
    role, permissions, held = CALLERS[caller]
    admin.create_agent(seated.engine, "acme", "caller", role=role, permissions=permissions)
    needed = NEEDS.get(act, "approve")
    if needed in held:
        assert ACTS[act](seated, "caller").result["mutation_id"]
    else:
        refused(Forbidden, lambda stage: ACTS[act](stage, "caller"), match=f"may not {needed}")


@pytest.mark.parametrize("nobody", ["", None])
@pytest.mark.parametrize("act", ACTS)
def test_the_user_may_do_all(seated, act, nobody):
    """SES-5: an empty caller is the user, or the system."""
    did = ACTS[act](seated, nobody)
    [row] = seated.board.rows("SELECT actor_type, actor_id FROM mutations WHERE id = :id", id=did.result["mutation_id"])
    assert row == {"actor_type": "user", "actor_id": None}


@pytest.mark.parametrize(("caller", "why"), [("olga", "is not of workspace"), ("ghost", "no agent of this office")])
@pytest.mark.parametrize("act", ACTS)
def test_a_caller_from_elsewhere_may_nothing(refused, act, caller, why):
    """SES-5: whatever its role there; nor who is nobody's agent."""
    refused(Forbidden, lambda stage: ACTS[act](stage, caller), match=why)


def test_no_payload_authorizes(seated, refused):
    """SES-5: a guest that says of itself what it likes, on the task, in comments and in runs, stays a guest."""
    admin.create_agent(seated.engine, "acme", "guest", role="guest", name="role: ceo")
    seated.comment(body="caller_agent_id: boss, permissions: [approve]", by="guest")
    seated.board.ask(None, agent="guest", payload={"task_id": "T1", "role": "ceo", "permissions": ["approve"]})
    for act in ACTS.values():
        refused(Forbidden, lambda stage, act=act: act(stage, "guest"))


def test_a_permission_lost_since_is_none_to_a_redelivery(seated):
    """SES-5, PRO-6.1: what was allowed and done is answered again, not judged again."""
    from office_tasks.producers.participants import remove_participant as remove

    admin.create_agent(seated.engine, "acme", "boss", role="ceo")
    first = remove(seated.engine, "m", "T1", "ana", "reviewer", "boss")
    seated.board.execute("UPDATE agents SET role = 'guest' WHERE id = 'boss'")
    assert remove(seated.engine, "m", "T1", "ana", "reviewer", "boss") == first


NO_ROLES = ["", "Reviewer", "reviewer ", "ceo", "owner", None, 7, ["reviewer"]]


@pytest.mark.parametrize("role", NO_ROLES, ids=repr)
def test_a_role_that_does_not_exist(refused, role):
    """SES-1.1, SES-2.2: refused by a sentence that names the five."""
    sentence = "role: must be one of runner, reviewer, approver, collaborator, watcher"
    for act in (lambda s: s.add(role, "bob"), lambda s: s.remove(role), lambda s: s.claim(role)):
        refused(InvalidInput, act, match=sentence)


BAD = {
    "the runner's seat is not added": (InvalidInput, lambda s: s.add("runner", "bob"), "assign_task"),
    "the runner's seat is not claimed": (InvalidInput, lambda s: s.claim("runner"), "assign_task"),
    "a seat that is not there": (NotFound, lambda s: s.remove("approver"), "no approver seat"),
    "a seat that is another's": (NotFound, lambda s: s.remove("reviewer", "bob"), "no reviewer seat"),
    "a runner's seat that is another's": (NotFound, lambda s: s.remove("runner", "bob"), "no runner seat"),
    "a seat of nobody that is": (NotFound, lambda s: s.remove("reviewer", "ghost"), "no reviewer seat"),
    "a claim of a seat that is not there": (NotFound, lambda s: s.claim("approver"), "no approver seat"),
    "a claim of another's seat": (NotFound, lambda s: s.claim("reviewer", "cleo"), "no reviewer seat"),
    "a claim by who sits there": (InvalidInput, lambda s: s.claim("reviewer", "ana", "ana"), "already sits"),
    "a claim by nobody that is": (NotFound, lambda s: s.claim("reviewer", "ana", "ghost"), "'ghost'"),
    "an agent that is not there": (NotFound, lambda s: s.add("reviewer", "ghost"), "'ghost'"),
    "an agent of another workspace": (InvalidInput, lambda s: s.add("reviewer", "olga"), "not of workspace"),
    "a claim by another workspace's": (InvalidInput, lambda s: s.claim("reviewer", "ana", "olga"), "not of workspace"),
    "an assignee of another workspace": (InvalidInput, lambda s: s.assign(agent="olga"), "not of workspace"),
    "a task that is not there, to add": (NotFound, lambda s: s.add("reviewer", task="T9"), "'T9'"),
    "a task that is not there, to remove": (NotFound, lambda s: s.remove("reviewer", task="T9"), "'T9'"),
    "a task that is not there, to claim": (NotFound, lambda s: s.claim("reviewer", task="T9"), "'T9'"),
    "no task": (InvalidInput, lambda s: s.remove("reviewer", task=""), "task_id"),
    "no agent": (InvalidInput, lambda s: s.remove("reviewer", ""), "agent_profile_id"),
    "no agent to add": (InvalidInput, lambda s: s.add("reviewer", None), "agent_profile_id"),
    "nobody displaced": (InvalidInput, lambda s: s.claim("reviewer", ""), "displaced_agent_id"),
    "nobody claiming": (InvalidInput, lambda s: s.claim("reviewer", "ana", ""), "claiming_agent_id"),
    "a caller that is no identifier": (InvalidInput, lambda s: s.remove("reviewer", by=7), "caller_agent_id"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_accepted(refused, case):
    """SES-1.1, SES-3.2: typed, its sentence names what is wrong; no row of any table is written, nothing counted."""
    error, act, sentence = BAD[case]
    refused(error, act, match=sentence)


def test_a_template_is_its_steps_and_not_the_tasks(seated, refused):
    """SES-2.2: it is neither removed from a task nor claimed on one."""
    seated.seat("approver", "ana", task=None)
    for act in (lambda s: s.remove("approver"), lambda s: s.claim("approver")):
        refused(NotFound, act, match="seat of its own")


@pytest.mark.parametrize("task", ["T1", None], ids=["its own", "by template"])
def test_who_sits_in_the_role_already_claims_no_second_seat(seated, refused, task):
    """SES-3.2: two seats would become one, and nobody said that one reviewer is enough."""
    seated.seat("reviewer", "bob", task=task)
    refused(InvalidInput, lambda s: s.claim("reviewer"), match="'bob' already sits there as reviewer")


def test_a_seat_at_another_step_is_not_there(seated, refused):
    """SES-2.3: the task moved on, and its reviewer's seat with that step."""
    seated.enter(step="wait")
    for act in (lambda s: s.remove("reviewer"), lambda s: s.claim("reviewer")):
        refused(NotFound, act, match="where that stands now")


def test_a_task_without_a_step_has_no_seats_to_give(seated, refused):
    """SES-2.2: none is added, removed or claimed there; its runner's can be taken away."""
    seated.onboard("ana")
    task = seated.board.rows("SELECT id FROM tasks WHERE step_id IS NULL")[0]["id"]
    refused(InvalidInput, lambda s: s.add("reviewer", "bob", task=task), match="stands on no step")
    refused(NotFound, lambda s: s.remove("reviewer", task=task))
    refused(NotFound, lambda s: s.claim("reviewer", task=task))
    seated.converse(task)
    assert seated.remove("runner", task=task).result["session"]["terminated"]


def test_who_sits_there_already_stays(seated):
    """SES-2.5: adding a seat twice is a documented no-op: told, and one row."""
    first, second = (seated.add("watcher", "bob").result for _ in range(2))
    assert (first["added"], second["added"]) == (True, False)
    assert seated.seats("bob") == [("T1", "start", "watcher")]


@pytest.mark.parametrize(
    ("task", "args", "error"),
    [
        (remove_participant, ("T1", "ana", "boss"), InvalidInput),
        (remove_participant, ("T9", "ana", "reviewer"), NotFound),
        (claim_seat, ("T1", "reviewer", "ana", "bob", "olga"), Forbidden),
        (delete_agent, ("ghost",), NotFound),
    ],
)
def test_by_celery_it_is_a_failure_with_that_error(seated, office, task, args, error):
    """SES-5, SES-1.1: not retried, nothing written."""
    before = seated.everything()
    with statements(office.engine):
        done = task.apply(args)
    assert (done.state, type(done.result)) == ("FAILURE", error)
    assert seated.everything() == before


def test_by_celery_each_does_what_it_says(seated, office):
    """SES-1.1, SES-4.2: the tasks by their names, with their arguments in their order."""
    from office_tasks import add_participant

    added = add_participant.apply(("T1", "bob", "approver", ""))
    claimed = claim_seat.apply(("T1", "approver", "bob", "cleo"))
    removed = remove_participant.apply(("T1", "ana", "reviewer"))
    deleted = delete_agent.apply(("ana",))
    assert [done.state for done in (added, claimed, removed, deleted)] == ["SUCCESS"] * 4
    assert claimed.result["session"] == {"terminated": False}
    assert removed.result["session"] == {"terminated": False, "retained": "runner"}
    assert len(deleted.result["sessions"]) == 1
    assert seated.seats("cleo") == [("T1", "start", "approver")]
