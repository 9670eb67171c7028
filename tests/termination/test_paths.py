"""The three guarded paths: which one ends the session of an agent with several roles, and what each does besides."""

from __future__ import annotations

from itertools import permutations

import pytest

from office_tasks import admin
from office_tasks.producers.participants import claim_seat
from office_tasks.termination import GUARDED
from recovery.relay import relay_once
from tests.admission.rows import store_run
from tests.admission.telling import listening
from tests.db.plans import statements
from tests.faults.waits import in_background
from tests.support import after
from tests.termination.handlers import executing
from tests.termination.stage import Present

ROLES = ("runner", "reviewer", "approver")
# By name: how each role is taken from `ana`, and the reason that the path gives.
WAYS = {
    "removed": (
        {role: lambda stage, role=role: stage.remove(role) for role in ROLES},
        dict.fromkeys(ROLES, GUARDED[0]),
    ),
    "claimed and reassigned": (
        {
            "runner": lambda stage: stage.assign(agent="bob"),
            "reviewer": lambda stage: stage.claim("reviewer"),
            "approver": lambda stage: stage.claim("approver", claiming="cleo"),
        },
        {"runner": GUARDED[2], "reviewer": GUARDED[1], "approver": GUARDED[1]},
    ),
    "removed and unassigned": (
        {
            "runner": lambda stage: stage.assign(agent=""),
            "reviewer": lambda stage: stage.remove("reviewer"),
            "approver": lambda stage: stage.claim("approver"),
        },
        {"runner": GUARDED[2], "reviewer": GUARDED[0], "approver": GUARDED[1]},
    ),
}


def cast(stage, task="T1"):
    """Make `ana` the runner, reviewer and approver of a task."""
    stage.create(task, assignee="ana")
    for role in ("reviewer", "approver"):
        stage.add(role, task=task)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("order", list(permutations(ROLES)), ids="-".join)
def test_the_last_of_three_roles_ends_the_session(stage, order, way):
    """C21, SES-1.3, SES-1.4, SES-3.4: untouched after the first and the second, completed once, with the third."""
    cast(stage)
    cast(stage, "T2")
    session, elsewhere = stage.converse(), stage.converse("T2")
    before = stage.session(session), stage.session(elsewhere)
    acts, reasons = WAYS[way]
    for role, left in zip(order[:2], (order[1:], order[2:]), strict=True):
        result = acts[role](stage).result
        assert result["session"] == {"terminated": False, "retained": "runner" if "runner" in left else "seat"}
        assert stage.session(session) == before[0]
    last = acts[order[2]](stage).result
    assert last["session"] == {"terminated": True, "session_id": str(session), "from_state": "idle"}
    ended = stage.session(session)
    assert (ended["state"], ended["reason"]) == ("completed", reasons[order[2]])
    for reason in GUARDED:
        assert stage.guard(reason=reason) == {"terminated": False}
    assert stage.session(session) == ended
    assert stage.session(elsewhere) == before[1]


def test_a_role_on_another_task_keeps_nothing_here(stage):
    """C21: the agent drives and reviews T2; its session on T1 ends with its last role there."""
    cast(stage, "T2")
    stage.create("T1")
    stage.add("reviewer")
    here, elsewhere = stage.converse("T1"), stage.converse("T2")
    before = stage.session(elsewhere)
    assert stage.remove("reviewer").result["session"]["session_id"] == str(here)
    assert stage.session(elsewhere) == before


def test_the_end_of_a_session_is_told_with_the_mutation(stage):
    """SES-1.2, PRO-6.1: what the guarded step came to is part of the stored result."""
    stage.create()
    stage.add("reviewer")
    session = stage.converse()
    did = stage.remove("reviewer")
    [row] = stage.board.rows("SELECT kind, result, settled_at FROM mutations WHERE id = :id", id="m3")
    assert (row["kind"], row["settled_at"] is not None) == ("remove_participant", True)
    assert row["result"] == did.result
    assert row["result"]["session"]["session_id"] == str(session)


LOSSES = {
    "reassigned": lambda stage: stage.assign(agent="bob"),
    "unassigned": lambda stage: stage.assign(agent=""),
    "removed": lambda stage: stage.remove("runner"),
}


@pytest.mark.parametrize("how", LOSSES)
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "ended"])
def test_the_execution_of_a_runner_that_lost_its_task_is_stopped(present, how, kept):
    """SES-3.1: cancelled whether or not the session is kept; and a session that is kept is not written."""
    present.create(assignee="ana")
    if kept:
        present.add("reviewer")
    with executing(present.engine) as execution:
        before = present.session(execution.session)
        result = LOSSES[how](present).result
        [run] = result["interrupted"]
        assert (present.session(execution.session) == before) is kept
        over = execution.over()
    assert (str(over.run.id), over.result, over.ended.cancel_reason) == (run, "cancelled", "interrupted")
    assert result["session"]["terminated"] is not kept
    now = present.session(execution.session)
    assert (now["state"], now["reason"] is None) == (("idle", True) if kept else ("completed", False))


def test_who_displaces_nobody_stops_nothing(present):
    """SES-3.1, SES-1.1: assigned again to the same agent, its execution goes on; no question is asked."""
    present.create(assignee="ana")
    with executing(present.engine) as execution:
        before = present.session(execution.session)
        result = present.assign(agent="ana").result
        assert "session" not in result
        assert present.session(execution.session) == before
        assert execution.finish().result == "finished"


@pytest.mark.parametrize("lose", ["claim", "remove"])
@pytest.mark.parametrize("role", ["reviewer", "approver"])
def test_a_runner_that_loses_another_seat_works_on(present, lose, role):
    """SES-3.4, C21: runner and reviewer, at work, displaced from the seat: not stopped, its only session untouched."""
    present.create(assignee="ana")
    present.add(role)
    with executing(present.engine) as execution:
        before = present.session(execution.session)
        result = getattr(present, lose)(role).result
        assert result["session"] == {"terminated": False, "retained": "runner"}
        assert "interrupted" not in result
        assert present.session(execution.session) == before
        over = execution.finish()
    assert over.result == "finished"
    assert present.session(execution.session)["state"] == "idle"
    assert present.board.count("sessions") == 1


def test_the_interrupt_does_not_wait_for_the_question(present, pause_at):
    """SES-3.3, PRO-3.5: while nobody answers yet, the execution of the displaced is asked to stop already."""
    present.create(assignee="ana")
    with executing(present.engine) as execution, in_background() as start, pause_at("before_question") as let_pass:
        call = start(present.assign, agent="bob")
        assert execution.over().result == "cancelled"
        assert not call.done()
        let_pass()
        result = call.result(20).result
    assert result["interrupted"] == [str(execution.over().run.id)]
    assert result["session"]["session_id"] == str(execution.session)
    assert present.board.rows("SELECT result FROM mutations WHERE id = 'm2'")[0]["result"] == result


def test_an_interrupt_that_failed_is_made_good(present, restricted):
    """SES-3.3, PRO-3.5, PRO-6.1: nothing counts as settled without it; the session does not wait for it."""
    present.create(assignee="ana")
    with executing(present.engine) as execution:
        restricted.forbid_update("runs", "cancel_requested_at")
        hindered = Present(present.board, restricted.engine())
        hindered._messages = 50
        with listening() as told:
            result = hindered.assign(agent="bob").result
        assert told.events("interrupt_failed")
        assert told.events("mutation_not_settled")
        assert (result["interrupted"], result["session"]["terminated"]) == (None, True)
        present.board.execute("UPDATE mutations SET committed_at = committed_at - interval '1 min' WHERE id = 'm51'")
        present.board.execute("UPDATE runs SET claimed_at = claimed_at - interval '1 min'")
        assert relay_once(present.engine, None)["settled"] == 1
        assert execution.over().result == "cancelled"
    [row] = present.board.rows("SELECT result FROM mutations WHERE id = 'm51'")
    assert row["result"]["interrupted"] == [str(execution.over().run.id)]


# What names this very act and its task, or is the session itself.
NAMES = {"mutation_id", "task_id", "session", "wakes", "runs", "withdrawn"}


@pytest.mark.parametrize("lose", ["remove", "claim", "assign"])
def test_a_suppression_changes_nothing_else(stage, lose):
    """SES-3.3: the same acts with and without a capacity left: the same wakes, runs and events, none more or less."""

    def play(task, kept):
        stage.create(task, assignee="ana" if lose == "assign" else "")
        stage.add("reviewer", task=task)
        if kept:
            stage.add("watcher", task=task)
        if lose == "assign" and not kept:
            stage.board.execute("DELETE FROM seats WHERE role = 'reviewer'")
        stage.converse(task)
        stage.status("in_review", task=task)
        store_run(stage.board, payload={"task_id": task}, retry_at=after(days=9), key=f"retry of {task}")
        counts = {table: stage.board.count(table) for table in ("wakes", "runs", "events")}
        did = stage.assign(task, "bob") if lose == "assign" else getattr(stage, lose)("reviewer", task=task)
        grown = {table: stage.board.count(table) - count for table, count in counts.items()}
        cancelled = stage.board.rows(
            "SELECT reason FROM runs WHERE task_id = :task AND status = 'cancelled' ORDER BY 1", task=task
        )
        result = {key: value for key, value in did.result.items() if key not in NAMES}
        return did.result["session"]["terminated"], (grown, did.woken, cancelled, sorted(result))

    (kept, before), (ended, afterwards) = play("T1", kept=True), play("T2", kept=False)
    assert (kept, ended) == (False, True)
    assert before == afterwards


def test_a_termination_wakes_nobody(stage):
    """SES-3.3: neither kept nor ended."""
    cast(stage)
    stage.converse()
    wakes = stage.board.count("wakes")
    for act in (lambda: stage.remove("reviewer"), lambda: stage.remove("approver"), lambda: stage.remove("runner")):
        assert act().wakes == []
    assert not stage.is_live()
    assert stage.board.count("wakes") == wakes


def review(stage, roles, task="T1", **more):
    more = {"reason": "task_review_requested", **more}
    return store_run(stage.board, payload={"task_id": task, "roles": roles, "note": "kept"}, **more)


def test_what_was_asked_of_the_displaced_is_withdrawn(stage):
    """SES-3.2: the role leaves its queued reviews on that task; with none left they are cancelled, retries too."""
    stage.create()
    for role in ("reviewer", "approver"):
        stage.seat(role, "ana")
    both = review(stage, ["approver", "reviewer"])
    only = review(stage, ["reviewer"])
    twice = review(stage, ["reviewer", "reviewer"])
    retry = review(stage, ["reviewer"], retry_at=after(hours=1))
    retry_of_both = review(stage, ["approver", "reviewer"], retry_at=after(hours=1))

    did = stage.claim("reviewer", at=after(hours=2))

    assert did.result["withdrawn"] == {
        str(both): "queued", str(retry_of_both): "queued",
        str(only): "cancelled", str(twice): "cancelled", str(retry): "cancelled",
    }  # fmt: skip
    for run_id in (only, twice, retry):
        run = stage.board.run(run_id)
        assert (run["status"], run["cancel_reason"], run["finished_at"], run["scheduled_retry_at"]) == (
            "cancelled", "participant_seat_claimed", after(hours=2), None,
        )  # fmt: skip
    for run_id, retry_at in ((both, None), (retry_of_both, after(hours=1))):
        run = stage.board.run(run_id)
        assert (run["status"], run["scheduled_retry_at"], run["cancel_reason"]) == ("queued", retry_at, None)
        assert run["payload"] == {"task_id": "T1", "roles": ["approver"], "note": "kept"}


def test_nothing_else_is_withdrawn(stage):
    """SES-3.2: not for another role, agent, task or reason; not what is claimed or over; no payload is misread."""
    stage.create()
    stage.seat("reviewer", "ana")
    untouched = [
        review(stage, ["approver"]),
        review(stage, []),
        review(stage, "reviewer"),
        review(stage, None),
        review(stage, ["reviewers", "Reviewer", 7, None, ["reviewer"]]),
        review(stage, ["reviewer"], agent="cleo"),
        review(stage, ["reviewer"], task="T2"),
        review(stage, ["reviewer"], reason="task_assigned"),
        review(stage, ["reviewer"], status="claimed"),
        review(stage, ["reviewer"], status="finished"),
        review(stage, ["reviewer"], status="failed"),
        store_run(stage.board, payload={"task_id": "T1"}, reason="task_review_requested"),
        store_run(stage.board, payload={"task_id": "T1", "roles": {"reviewer": 1}}, reason="task_review_requested"),
    ]
    before = {one: stage.board.run(one) for one in untouched}
    assert stage.claim("reviewer", at=after(hours=2)).result["withdrawn"] == {}
    assert {one: stage.board.run(one) for one in untouched} == before


def test_a_claim_commits_with_the_seat_naming_the_claimer(stage):
    """SES-3.2: one seat, another occupant; its own other roles stay; an event says who changed, not how."""
    stage.create()
    for role in ("reviewer", "approver"):
        stage.add(role)
    did = stage.claim("reviewer")
    assert did.result["displaced_agent_id"] == "ana"
    assert (stage.seats("ana"), stage.seats("bob")) == ([("T1", "start", "approver")], [("T1", "start", "reviewer")])
    [event] = stage.board.rows("SELECT type, changed FROM events WHERE mutation_id = 'm4'")
    assert event == {"type": "task_participants_changed", "changed": ["participants"]}


def test_a_claim_happens_before_the_question(stage, cut_off):
    """SES-3.2: claim, withdrawal and seat are one commit; whoever dies behind it leaves all three, the session live."""
    stage.create()
    stage.add("reviewer")
    stage.converse()
    run = review(stage, ["reviewer"])
    cut_off(claim_seat, stage.engine, "cut", "T1", "reviewer", "ana", "bob")
    assert (stage.seats("ana"), stage.seats("bob")) == ([], [("T1", "start", "reviewer")])
    assert stage.board.run(run)["status"] == "cancelled"
    assert stage.is_live()
    assert claim_seat(stage.engine, "cut", "T1", "reviewer", "ana", "bob")["session"]["terminated"]
    assert not stage.is_live()


def test_only_a_claim_withdraws_reviews(stage):
    """SES-3.2: a seat that is removed leaves what was asked before."""
    stage.create()
    stage.add("reviewer")
    run = review(stage, ["reviewer"])
    before = stage.board.run(run)
    stage.remove("reviewer")
    assert stage.board.run(run) == before


def test_taking_a_template_away_is_no_guarded_path(stage):
    """SES-1.1, SES-2.2: a template counts until it is taken away, which asks nothing; the next loss does."""
    stage.create()
    stage.add("reviewer")
    session = stage.converse()
    admin.add_template_seat(stage.engine, "start", "watcher", "ana")
    before = stage.session(session)
    assert stage.remove("reviewer").result["session"]["retained"] == "seat"
    with statements(stage.engine) as sent:
        assert admin.remove_template_seat(stage.engine, "start", "watcher", "ana")
    assert [sql for sql, _ in sent if "sessions" in sql] == []
    assert stage.session(session) == before
    assert stage.guard()["session_id"] == str(session)
