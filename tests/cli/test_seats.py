"""`office seat` and `office agent delete`: done, and what became of the session told in a sentence."""

from __future__ import annotations

import uuid

import pytest

from office_tasks import admin, enter_step
from tests.admission.rows import store_run
from tests.cli.said import as_json, told


@pytest.fixture
def task(run, board):
    """A task of ana's at `start`, with two more steps' agents about; its id."""
    for agent in ("cat", "dan"):
        admin.create_agent(board.engine, "acme", agent)
    admin.create_workspace(board.engine, "other")
    admin.create_agent(board.engine, "other", "zed")
    told(run, "task", "create", "acme", "Paint", "--task", "T1", "--step", "start", "--assignee", "ana")
    return "T1"


def open_session(board, agent, task="T1", state="idle"):
    session_id = str(uuid.uuid4())
    board.execute(
        "INSERT INTO sessions (id, task_id, agent_profile_id, state) VALUES (CAST(:id AS uuid), :task, :agent, :state)",
        id=session_id, task=task, agent=agent, state=state,
    )  # fmt: skip
    return session_id


def session(board, session_id):
    return board.rows("SELECT * FROM sessions WHERE id = CAST(:id AS uuid)", id=session_id)[0]


def test_a_seat_is_given_once(run, task):
    """SES-2.2: and the list names it, with the runner's own."""
    assert told(run, "seat", "add", task, "bob", "reviewer") == ["bob is reviewer of task T1 at step start"]
    assert told(run, "seat", "add", task, "bob", "reviewer") == ["bob is reviewer of task T1 at step start already"]
    told(run, "seat", "template", "start", "cat", "approver")
    assert as_json(run, "seat", "list", task) == [
        {"role": "runner", "agent_profile_id": "ana", "is_template": False},
        {"role": "reviewer", "agent_profile_id": "bob", "is_template": False},
        {"role": "approver", "agent_profile_id": "cat", "is_template": True},
    ]
    lines = [line.split() for line in told(run, "seat", "list", task)]
    assert lines == [
        ["agent_profile_id", "role", "is_template"],
        ["ana", "runner", "no"], ["bob", "reviewer", "no"], ["cat", "approver", "yes"],
    ]  # fmt: skip


def test_a_task_on_no_step_has_no_seats(run, task):
    """SES-2.2: it says so, and who drives it."""
    told(run, "task", "create", "acme", "Loose", "--task", "T2", "--assignee", "bob")
    assert told(run, "seat", "list", "T2") == ["task T2 stands on no step, so nobody sits on it; its runner: bob"]
    assert as_json(run, "seat", "list", "T2") == []


def test_the_last_seat_taken_away_ends_the_session(run, board, task):
    """SES-1.4: told with its id and what it was."""
    told(run, "seat", "add", task, "bob", "reviewer")
    live = open_session(board, "bob", state="running")
    assert told(run, "seat", "remove", task, "bob", "reviewer") == [
        "bob is no longer reviewer of task T1",
        f"its session {live} has ended; it was running",
    ]
    assert (session(board, live)["state"], session(board, live)["reason"]) == ("completed", "participant_removed")


def test_a_session_is_kept_for_another_seat(run, board, task):
    """SES-1.3: told by what."""
    for role in ("reviewer", "watcher"):
        told(run, "seat", "add", task, "bob", role)
    live = open_session(board, "bob")
    before = session(board, live)
    assert told(run, "seat", "remove", task, "bob", "reviewer")[1] == (
        "any session of its is kept: bob still sits on task T1"
    )
    assert session(board, live) == before


def test_a_claim_keeps_the_session_of_the_runner(run, board, task):
    """SES-3.4: the runner loses its other seat; SES-3.2: its review is withdrawn."""
    told(run, "seat", "add", task, "ana", "reviewer")
    told(run, "seat", "add", task, "ana", "approver")
    live = open_session(board, "ana")
    before = session(board, live)
    one = store_run(board, reason="task_review_requested", payload={"task_id": task, "roles": ["reviewer"]})
    two = store_run(board, reason="task_review_requested", payload={"task_id": task, "roles": ["reviewer", "approver"]})
    said = told(run, "seat", "claim", task, "reviewer", "ana", "bob")
    assert (said[0], said[-1]) == (
        "bob is reviewer of task T1 in place of ana",
        "any session of its is kept: ana is still the runner of task T1",
    )
    assert sorted(said[1:-1]) == sorted(
        [f"review run {one} of ana is cancelled", f"review run {two} of ana is for its other roles only"]
    )
    assert session(board, live) == before


def test_without_a_live_session_there_was_none(run, task):
    """SES-1.4: nothing to do is a success."""
    told(run, "seat", "add", task, "cat", "watcher")
    assert told(run, "seat", "claim", task, "watcher", "cat", "dan") == [
        "dan is watcher of task T1 in place of cat",
        "cat had no live session on task T1",
    ]


def test_a_question_that_cannot_be_read_keeps_the_session(run, board, task):
    """SES-1.5: Postgres refuses the read; the seat is gone, the session stays, and the sentence says why."""
    told(run, "seat", "add", task, "bob", "reviewer")
    live = open_session(board, "bob")
    before = session(board, live)
    board.execute(
        "CREATE TABLE asked (n int); "
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "ALTER TABLE steps RENAME TO steps_away; RETURN NULL; END $$; "
        "CREATE TRIGGER refuse AFTER DELETE ON seats FOR EACH STATEMENT EXECUTE FUNCTION refuse()"
    )
    assert told(run, "seat", "remove", task, "bob", "reviewer")[1] == (
        "any session of its is kept: what bob still holds on task T1 could not be read"
    )
    board.execute("ALTER TABLE steps_away RENAME TO steps")
    assert session(board, live) == before


def test_a_session_that_cannot_be_ended_stays(run, board, task):
    """SES-1.5: the terminator's failure is shown, not raised."""
    told(run, "seat", "add", task, "bob", "reviewer")
    live = open_session(board, "bob")
    board.execute("ALTER TABLE sessions ADD CONSTRAINT never CHECK (state <> 'completed')")
    said = told(run, "seat", "remove", task, "bob", "reviewer")[1]
    assert said.startswith("its session could not be ended, and stays: 23514")
    assert session(board, live)["state"] == "idle"


def test_the_runners_seat_taken_away_is_an_unassignment(run, board, task):
    """SES-1.1, SES-3.1: by the reason of a removal; the execution is asked to stop."""
    live = open_session(board, "ana", state="running")
    [wake] = board.runs()
    board.set_status(wake["id"], "claimed")
    assert told(run, "seat", "remove", task, "ana", "runner") == [
        "ana is no longer runner of task T1",
        f"executions asked to stop: {wake['id']}",
        f"its session {live} has ended; it was running",
    ]
    assert session(board, live)["reason"] == "participant_removed"


def test_a_template_seat_comes_and_goes_once(run, board, task):
    """SES-2.2: it keeps a session while it is there; its going ends none."""
    assert told(run, "seat", "template", "start", "bob", "reviewer") == ["bob is reviewer of every task at step start"]
    assert told(run, "seat", "template", "start", "bob", "reviewer")[0].endswith(" already")
    told(run, "seat", "add", task, "bob", "watcher")
    live = open_session(board, "bob")
    assert "still sits" in told(run, "seat", "remove", task, "bob", "watcher")[1]
    assert told(run, "seat", "template", "start", "bob", "reviewer", "--remove") == [
        "bob is no longer reviewer of every task at step start"
    ]
    assert as_json(run, "seat", "template", "start", "bob", "reviewer", "--remove") == {
        "step_id": "start", "agent_profile_id": "bob", "role": "reviewer", "removed": False,
    }  # fmt: skip
    assert told(run, "seat", "template", "start", "bob", "reviewer", "--remove")[0].startswith("bob was not reviewer")
    assert session(board, live)["state"] == "idle"


def test_as_json_a_result_is_the_producers(run, board, task):
    told(run, "seat", "add", task, "bob", "reviewer")
    live = open_session(board, "bob")
    claimed = as_json(run, "seat", "claim", task, "reviewer", "bob", "cat")
    assert (claimed["agent_profile_id"], claimed["displaced_agent_id"]) == ("cat", "bob")
    assert claimed["session"] == {"terminated": True, "session_id": live, "from_state": "idle"}
    assert as_json(run, "seat", "remove", task, "cat", "reviewer")["session"] == {"terminated": False}
    assert as_json(run, "seat", "add", task, "bob", "reviewer")["added"] is True


def test_deleting_an_agent_says_what_ended(run, board, task):
    """SES-1.10: on every task, whatever it holds there; its seat stays."""
    told(run, "task", "create", "acme", "Sand", "--task", "T2", "--step", "start", "--assignee", "ana")
    lives = [open_session(board, "ana", task) for task in ("T1", "T2")]
    running = store_run(board, status="claimed")
    assert told(run, "agent", "delete", "ana", "--yes") == [
        "agent ana is deleted; its seats stay",
        "sessions ended: 2",
        "queued runs cancelled: 2",
        "executions asked to stop: 1",
    ]
    assert {session(board, live)["reason"] for live in lives} == {"agent_deleted"}
    assert board.run(running)["cancel_reason"] == "agent_deleted"
    assert [seat["agent_profile_id"] for seat in as_json(run, "seat", "list", "T1")] == ["ana"]


def test_deleting_asks_for_a_yes(run, board, task):
    said = run("agent", "delete", "ana")
    assert (said.code, said.out) == (1, "")
    assert said.err == "office: deleting agent 'ana' cannot be taken back: say --yes to do it\n"
    assert board.count("agents") == 5


ROLES = "role: must be one of runner, reviewer, approver, collaborator, watcher, not"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("seat", "add", "T1", "bob", "boss"), f"{ROLES} 'boss'"),
        (("seat", "add", "T1", "bob", "runner"), "role: a task's runner is assigned: use assign_task"),
        (("seat", "add", "T9", "bob", "reviewer"), "there is no task 'T9'"),
        (("seat", "add", "T1", "", "reviewer"), "agent_profile_id: must not be empty or blank"),
        (("seat", "add", "T1", "bob", "reviewer", "--caller", "cat"), "agent 'cat' (role 'worker') may not approve"),
        (("seat", "remove", "T1", "bob", "boss"), f"{ROLES} 'boss'"),
        (
            ("seat", "remove", "T1", "bob", "reviewer"),
            "agent 'bob' has no reviewer seat of its own on task 'T1' where that stands now",
        ),
        (("seat", "remove", "T1", "bob", "runner"), "agent 'bob' has no runner seat on task 'T1'"),
        (("seat", "claim", "T1", "watcher", "bob", "bob"), "claiming_agent_id: agent 'bob' already sits there"),
        (
            ("seat", "claim", "T1", "watcher", "bob", "cat"),
            "agent 'bob' has no watcher seat of its own on task 'T1' where that stands now",
        ),
        (("seat", "list", "T9"), "there is no task 'T9'"),
        (
            ("seat", "template", "start", "bob", "runner"),
            "role: a step's runner is its primary agent, and a task's is assigned",
        ),
        (("seat", "template", "nowhere", "bob", "reviewer"), "there is no step 'nowhere'"),
        (("seat", "template", "start", "zed", "reviewer"), "agent_profile_id: agent 'zed' is not of workspace 'acme'"),
        (("seat", "template", "start", "bob", "boss", "--remove"), f"{ROLES} 'boss'"),
        (("agent", "delete", "nobody", "--yes"), "there is no agent 'nobody'"),
        (("agent", "delete", "", "--yes"), "agent_profile_id: must not be empty or blank"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_1(run, board, task, words, sentence):
    """SES-2, SES-5: nothing is written."""
    before = board.count("seats"), board.count("mutations")
    said = run(*words)
    assert (said.code, said.out, said.err) == (1, "", f"office: {sentence}\n")
    assert (board.count("seats"), board.count("mutations")) == before


@pytest.mark.parametrize("verb", ["add", "claim"])
def test_an_agent_of_another_workspace_sits_nowhere(run, board, task, verb):
    """SES-5: refused by a sentence that names it."""
    told(run, "seat", "add", task, "bob", "watcher")
    said = run(
        "seat", *{"add": ("add", task, "zed", "watcher"), "claim": ("claim", task, "watcher", "bob", "zed")}[verb]
    )
    assert said.code == 1
    assert "'zed' is not of workspace 'acme'" in said.err


def test_a_seat_that_a_task_has_left_behind_is_not_there(run, task):
    """SES-2.3: the task is moved, and its old seat is no one's to take."""
    told(run, "seat", "add", task, "bob", "reviewer")
    enter_step(task, "wait", "move-1")
    said = run("seat", "remove", task, "bob", "reviewer")
    assert (said.code, said.err.endswith("where that stands now\n")) == (1, True)
