"""Whatever happens behind the commit of a mutation: it stands, and its session ends when the question is answered."""

from __future__ import annotations

import pytest

from office_tasks.producers.after import give_up
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.participants import remove_participant
from recovery.relay import relay_once
from tests.admission.telling import counted, listening
from tests.db.conftest import own_board, own_server  # noqa: F401 - they are fixtures
from tests.faults.waits import holding, in_background
from tests.nodes.waiting import until
from tests.termination.stage import SUPPRESSED, Stage, kept_unread


def test_the_mutation_stands_when_its_question_fails(stage, session, make_test_engine, pause_at, committed):
    """SES-1.2, SES-1.5, SES-3.3: the seat is gone and the result says so, and that the session was kept unread."""
    stage.add("reviewer")
    before = stage.session(session)
    slow = type(stage)(stage.board, make_test_engine(session={"statement_timeout": "200"}))
    slow._messages = 50
    with in_background() as start, listening() as told, pause_at("before_question") as let_pass:
        call = start(slow.remove, "reviewer")
        committed("m51")
        with holding(stage.engine, "LOCK TABLE seats IN ACCESS EXCLUSIVE MODE"):
            let_pass()
            result = call.result(20).result
    assert result["removed"]
    assert result["session"] == {"terminated": False, "retained": "read_failed"}
    assert stage.seats() == []
    assert stage.session(session) == before
    kept_unread(told, "57014")
    [row] = stage.board.rows("SELECT result, settled_at FROM mutations WHERE id = 'm51'")
    assert (row["result"], row["settled_at"] is not None) == (result, True)


@pytest.mark.parametrize("point", ["after_commit", "before_question"])
@pytest.mark.parametrize("kept", [True, False])
def test_a_death_behind_the_commit_is_made_good(stage, session, cut_off, point, kept):
    """SES-1.2, SES-1.4: the message comes again: the seat is not removed twice, the question is asked, once more."""
    stage.seat("reviewer", "ana")
    if kept:
        stage.seat("watcher", "ana")
    before = stage.session(session)
    message = (stage.engine, "again", "T1", "ana", "reviewer")
    cut_off(remove_participant, *message, point=point)
    assert ("T1", "start", "reviewer") not in stage.seats()
    assert stage.session(session) == before
    with listening() as told:
        first, second = [remove_participant(*message) for _ in range(2)]
    assert first == second
    assert first["removed"]
    assert first["session"]["terminated"] is not kept
    assert told.moved.get(counted(SUPPRESSED, reason="participant_removed", retained="seat"), 0) == kept
    assert stage.is_live() is kept
    assert not kept or stage.session(session) == before


def test_what_was_granted_before_the_message_came_again_keeps_it(stage, session, cut_off):
    """SES-1.9: the question is about now, not about the time of the commit."""
    stage.seat("reviewer", "ana")
    message = (stage.engine, "again", "T1", "ana", "reviewer")
    cut_off(remove_participant, *message)
    stage.assign()
    assert remove_participant(*message)["session"] == {"terminated": False, "retained": "runner"}


def test_a_message_that_is_given_up_asks_all_the_same(stage, session, cut_off):
    """SES-1.1, ADM-10.5: whom the mutation displaced is displaced: its question is asked once, its result stored."""
    stage.seat("reviewer", "ana")
    message = (stage.engine, "deadly", "T1", "ana", "reviewer")
    cut_off(remove_participant, *message)
    give_up(stage.engine, "deadly")
    ended = stage.session(session)
    assert ended["reason"] == "participant_removed"
    give_up(stage.engine, "deadly")
    assert remove_participant(*message)["session"]["session_id"] == str(session)
    assert stage.session(session) == ended


def test_the_relay_takes_the_step_that_nobody_took(stage, session, cut_off):
    """SES-1.1, SES-1.4: a message that never comes again is settled by the relay, session included."""
    stage.assign()
    cut_off(assign_task, stage.engine, "lost", "T1", "bob")
    assert stage.is_live()
    stage.board.execute("UPDATE mutations SET committed_at = committed_at - interval '1 min' WHERE id = 'lost'")
    assert relay_once(stage.engine, None)["settled"] == 1
    assert stage.session(session)["reason"] == "task_reassigned"


@pytest.fixture
def away(own_server, own_board, pause_at):  # noqa: F811 - the fixtures that are imported
    """Return a function that removes a seat, and does something to Postgres between the commit and the question."""
    stage = Stage(own_board)
    stage.create()
    stage.session_id = stage.converse()
    stage.seat("reviewer", "ana")

    def remove(strike):
        with in_background() as start, pause_at("before_question") as let_pass:
            call = start(remove_participant, stage.engine, "m", "T1", "ana", "reviewer")
            until(lambda: stage.board.rows("SELECT 1 FROM mutations WHERE id = 'm'"), what="the commit")
            before = stage.session(stage.session_id)
            strike(own_server)
            let_pass()
            return stage, before, call.result(60)

    return remove


def test_postgres_restarts_before_the_question(away):
    """SES-1.2, SES-1.5: nobody notices: the pool finds its connections closed, and the question is answered."""
    stage, before, result = away(lambda server: server.restart())
    assert result["session"]["terminated"]
    assert stage.session(stage.session_id)["created_at"] == before["created_at"]
    assert not stage.is_live()


def test_postgres_is_away_when_the_question_is_asked(away, own_server):  # noqa: F811 - the fixture that is imported
    """SES-1.5: kept, byte for byte, through its crash, counted; and the mutation stands, to be settled by the relay."""
    with listening() as told:
        stage, before, result = away(lambda server: server.kill())
    assert (result["removed"], result["session"]) == (True, {"terminated": False, "retained": "read_failed"})
    kept_unread(told, "no answer")
    own_server.start()
    assert stage.session(stage.session_id) == before
    assert stage.seats() == []
    stage.board.execute("UPDATE mutations SET committed_at = committed_at - interval '1 min'")
    assert relay_once(stage.engine, None)["settled"] == 1
    assert stage.session(stage.session_id)["reason"] == "participant_removed"
