"""`office session show`: who holds what, which sessions live, why each ended or was kept."""

from __future__ import annotations

import uuid

import pytest
from structlog.testing import capture_logs

from db.standing import SHOWN
from office_tasks import admin
from office_tasks.producers.after import give_up
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.creation import create_task
from office_tasks.producers.deletion import delete_agent
from office_tasks.producers.participants import add_participant, claim_seat, remove_participant
from office_tasks.producers.steps import enter_step
from tests.cli.said import as_json
from tests.support import T0, after


@pytest.fixture(autouse=True)
def quiet():
    """What the producers log while an office is made ready is no output of a command."""
    with capture_logs():
        yield


@pytest.fixture
def shown(run):
    """Return what the command says of a task, as JSON."""

    return lambda task="T1": as_json(run, "session", "show", task)


@pytest.fixture
def engine_of(board):
    """The engine of an office where ana drives T1 at `start`, bob reviews it, and both have a live session."""
    create_task(board.engine, "m0", "acme", "Paint", task_id="T1", step_id="start", assignee_id="ana", instant=T0)
    add_participant(board.engine, "m1", "T1", "bob", "reviewer", instant=T0)
    for agent in ("ana", "bob"):
        open_session(board, agent)
    return board.engine


def open_session(board, agent, task="T1", at=T0):
    session_id = str(uuid.uuid4())
    board.execute(
        "INSERT INTO sessions (id, task_id, agent_profile_id, created_at, updated_at) "
        "VALUES (CAST(:id AS uuid), :task, :agent, :at, :at)",
        id=session_id, task=task, agent=agent, at=at,
    )  # fmt: skip
    return session_id


def held(document, part, *names):
    return [tuple(row[name] for name in names) for row in document[part]]


def test_who_holds_what_and_which_sessions_live(shown, board, engine_of):
    """SES-2.1, SES-2.2: the runner by its seat, each seat with whose it is, the live sessions."""
    admin.add_template_seat(engine_of, "start", "approver", "ana")
    document = shown()
    assert (document["id"], document["step_id"]) == ("T1", "start")
    assert (document["runner_id"], document["runner_by"]) == ("ana", "seat")
    assert held(document, "seats", "agent_profile_id", "role", "is_template") == [
        ("ana", "approver", True), ("ana", "runner", False), ("bob", "reviewer", False),
    ]  # fmt: skip
    assert sorted(held(document, "live", "agent_profile_id", "state")) == [("ana", "idle"), ("bob", "idle")]
    assert (document["ended"], document["kept"], document["more"]) == ([], [], [])


def test_each_tier_of_the_runner_projection_is_named(shown, board, engine_of):
    """SES-2.1: the seat here, else the step's primary agent, else the newest seat at another step, else nobody."""
    admin.create_step(engine_of, "acme", "led", workflow_id="flow", primary_agent_id="bob")

    def runner():
        document = shown()
        return document["runner_id"], document["runner_by"]

    assert runner() == ("ana", "seat")
    enter_step(engine_of, "m2", "T1", "led", "move-1")
    assert runner() == ("bob", "primary_agent")
    enter_step(engine_of, "m3", "T1", "wait", "move-2")
    assert runner() == ("ana", "earlier_seat")
    assign_task(engine_of, "m4", "T1", "")
    assert runner() == (None, None)


def test_a_seat_that_is_left_behind_is_not_shown(shown, engine_of):
    """SES-2.3: the task is moved."""
    enter_step(engine_of, "m2", "T1", "wait", "move-1")
    assert shown()["seats"] == []


def test_why_a_session_ended_and_why_one_was_kept(shown, board, engine_of):
    """SES-1.3, SES-1.4, SES-4: each with its time; ana is displaced as runner, bob twice, first while he still sits."""
    add_participant(engine_of, "m2", "T1", "bob", "watcher", instant=T0)
    remove_participant(engine_of, "m3", "T1", "bob", "watcher", instant=after(minutes=1))
    assign_task(engine_of, "m4", "T1", "bob", instant=after(minutes=2))
    claim_seat(engine_of, "m5", "T1", "reviewer", "bob", "ana", instant=after(minutes=3))
    document = shown()
    assert held(document, "ended", "agent_profile_id", "reason", "ended_at") == [
        ("ana", "task_reassigned", str(after(minutes=2)))
    ]
    assert held(document, "kept", "agent_profile_id", "reason", "retained", "committed_at") == [
        ("bob", "participant_seat_claimed", "runner", str(after(minutes=3))),
        ("bob", "participant_removed", "seat", str(after(minutes=1))),
    ]
    assert held(document, "live", "agent_profile_id") == [("bob",)]


def test_a_deleted_agents_sessions_are_among_the_ended(shown, engine_of):
    """SES-1.10: with the cascade's own reason; its seat stays."""
    delete_agent(engine_of, "m2", "bob", instant=after(minutes=1))
    document = shown()
    assert held(document, "ended", "agent_profile_id", "reason") == [("bob", "agent_deleted")]
    assert ("bob", "reviewer") in held(document, "seats", "agent_profile_id", "role")


def test_a_loss_that_found_no_live_session_kept_none(shown, board, engine_of):
    """SES-1.4: nothing to do is neither an end nor a keeping."""
    board.execute("DELETE FROM sessions")
    remove_participant(engine_of, "m2", "T1", "bob", "reviewer")
    assert (shown()["ended"], shown()["kept"]) == ([], [])


def test_a_failure_to_end_a_session_is_shown_with_its_error(shown, board, engine_of):
    """SES-1.5: it stays, and the result says why."""
    board.execute("ALTER TABLE sessions ADD CONSTRAINT never CHECK (state <> 'completed')")
    remove_participant(engine_of, "m2", "T1", "bob", "reviewer")
    [kept] = shown()["kept"]
    assert (kept["agent_profile_id"], kept["retained"]) == ("bob", "not_ended")
    assert kept["error"].startswith("23514")


def test_a_question_that_could_not_be_read_is_shown(shown, board, engine_of):
    """SES-1.5: the session is kept."""
    board.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "ALTER TABLE steps RENAME TO steps_away; RETURN NULL; END $$; "
        "CREATE TRIGGER refuse AFTER DELETE ON seats FOR EACH STATEMENT EXECUTE FUNCTION refuse()"
    )
    remove_participant(engine_of, "m2", "T1", "bob", "reviewer")
    board.execute("ALTER TABLE steps_away RENAME TO steps")
    document = shown()
    assert held(document, "kept", "agent_profile_id", "retained") == [("bob", "read_failed")]
    assert ("bob",) in held(document, "live", "agent_profile_id")


def test_a_change_that_is_not_settled_has_not_asked_yet(shown, board, engine_of):
    """SES-1.2: the question comes after the commit, for a message that was given up too."""
    remove_participant(engine_of, "m2", "T1", "bob", "reviewer")
    board.execute("UPDATE mutations SET result = NULL, settled_at = NULL WHERE id = 'm2'")
    assert held(shown(), "kept", "retained") == [("not_asked_yet",)]
    give_up(engine_of, "m2")
    assert (held(shown(), "kept", "retained"), held(shown(), "ended", "agent_profile_id")) == ([], [("bob",)])


def test_people_are_told_the_same(run, board, engine_of):
    """SES-4: one table a part, each row on one line."""
    assign_task(engine_of, "m2", "T1", "bob", instant=after(minutes=2))
    remove_participant(engine_of, "m3", "T1", "bob", "reviewer", instant=after(minutes=3))
    said = run("session", "show", "T1")
    lines = said.out.splitlines()
    assert lines[:4] == [
        "task T1 of workspace acme, todo, at step start", "runner: bob (its seat where the task stands)", "", "seats:",
    ]  # fmt: skip
    assert ["bob", "runner", "no"] in [line.split() for line in lines]
    for part in ("live sessions:", "ended sessions:", "kept sessions:"):
        assert part in lines
    assert "2026-03-02 09:03:00  bob               participant_removed  runner" in said.out


def test_a_task_that_nobody_holds(run, board):
    create_task(board.engine, "m0", "acme", "Paint", task_id="T1")
    assert run("session", "show", "T1").out.splitlines() == [
        "task T1 of workspace acme, todo, on no step", "runner: none",
        "", "seats: none", "", "live sessions: none", "", "ended sessions: none", "", "kept sessions: none",
    ]  # fmt: skip


def test_no_more_than_the_latest_are_shown(run, shown, board, engine_of):
    """SES-4: thousands of each: the newest of them, and that there are more."""
    board.execute(
        "INSERT INTO sessions (id, task_id, agent_profile_id, state, reason, ended_at) SELECT gen_random_uuid(), "
        "'T1', 'a' || n, 'completed', 'r' || n, :at + n * interval '1 s' FROM generate_series(1, 3000) n", at=T0,
    )  # fmt: skip
    board.execute(
        "INSERT INTO sessions (id, task_id, agent_profile_id, created_at) SELECT gen_random_uuid(), 'T1', 'b' || n, "
        ":at + n * interval '1 s' FROM generate_series(1, 3000) n", at=T0,
    )  # fmt: skip
    board.execute(
        "INSERT INTO seats (id, task_id, step_id, role, agent_profile_id) "
        "SELECT gen_random_uuid(), 'T1', 'start', 'watcher', 'c' || n FROM generate_series(1, 3000) n"
    )
    board.execute(
        "INSERT INTO mutations (id, kind, task_id, actor_type, facts, result, committed_at, settled_at) "
        "SELECT 'x' || n, 'test', 'T1', 'user', "
        "jsonb_build_object('guard', jsonb_build_object('agent_profile_id', 'd' || n, 'reason', 'r')), "
        "jsonb_build_object('session', jsonb_build_object('terminated', false, 'retained', 'seat')), "
        ":at + n * interval '1 s', :at FROM generate_series(1, 3000) n", at=T0,
    )  # fmt: skip
    document = shown()
    assert {part: len(document[part]) for part in document["more"]} == dict.fromkeys(
        ("seats", "live", "ended", "kept"), SHOWN
    )
    assert [document[part][0]["agent_profile_id"] for part in ("ended", "kept")] == ["a3000", "d3000"]
    assert document["live"][0]["agent_profile_id"] in {"b3000", "ana", "bob"}
    lines = run("session", "show", "T1").out.splitlines()
    assert "kept sessions, 20 of them; there are more:" in lines
    assert "seats, 20 of them; office seat list shows all:" in lines
    assert len(lines) < 100


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(("T9",), "there is no task 'T9'"), (("",), "there is no task ''"), (("T9", "--json"), "there is no task 'T9'")],
)
@pytest.mark.usefixtures("board")
def test_what_cannot_be_shown_is_one_sentence_and_exit_1(run, words, sentence):
    said = run("session", "show", *words)
    assert (said.code, said.out, said.err) == (1, "", f"office: {sentence}\n")
