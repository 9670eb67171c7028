"""The guarded step: a session ends with its agent's last capacity, and stays whenever that cannot be told."""

from __future__ import annotations

import pytest

from office_tasks import telemetry, terminate_session, termination
from office_tasks.errors import InvalidInput
from office_tasks.office import Office
from office_tasks.settings import Settings
from office_tasks.termination import GUARDED
from tests.admission.telling import counted, listening
from tests.db.plans import statements
from tests.faults.waits import holding, in_background, terminate, until_blocked
from tests.support import after
from tests.termination.stage import SUPPRESSED, kept_unread, logged

LATER = after(hours=1)


@pytest.mark.parametrize("reason", GUARDED)
@pytest.mark.parametrize("state", ["idle", "running"])
def test_it_ends_with_the_last_capacity(stage, reason, state):
    """SES-1.4, SES-4.2: completed, with the path's reason and its time; every other column as it was; told once."""
    stage.create()
    session = stage.converse(state=state)
    before = stage.session(session)
    with listening() as told:
        result = stage.guard(reason=reason, at=LATER)
    assert result == {"terminated": True, "session_id": str(session), "from_state": state}
    now = stage.session(session)
    written = {"state": "completed", "reason": reason, "ended_at": LATER, "updated_at": LATER}
    assert now == {**before, **written, "xmin": now["xmin"], "ctid": now["ctid"]}
    who = {"task_id": "T1", "session_id": str(session), "agent_profile_id": "ana"}
    assert logged(told) == [("info", "session_terminated", {**who, "reason": reason, "from_state": state})]
    assert told.moved == {}


def test_by_default_it_ends_now(stage, session):
    """SES-1.4: at the office's present."""
    stage.guard()
    assert stage.session(session)["state"] == "completed"
    just_now = "BETWEEN now() - interval '1 min' AND now()"
    assert stage.board.rows(f"SELECT 1 FROM sessions WHERE ended_at {just_now} AND updated_at {just_now}")


@pytest.mark.parametrize("reason", GUARDED)
@pytest.mark.parametrize("retained", ["runner", "seat"])
def test_a_capacity_keeps_it(stage, session, reason, retained):
    """SES-1.3, SES-4.1, SES-4.2: the row is not written at all, not even the same again; counted without ids, told."""
    stage.seat("runner" if retained == "runner" else "watcher", "ana")
    before = stage.session(session)
    with listening() as told:
        result = stage.guard(reason=reason, at=LATER)
    assert result == {"terminated": False, "retained": retained}
    assert stage.session(session) == before
    assert told.moved == {counted(SUPPRESSED, reason=reason, retained=retained): 1}
    fields = {"task_id": "T1", "agent_profile_id": "ana", "reason": reason, "retained_capacity": retained}
    assert logged(told) == [("info", "session_termination_suppressed", fields)]


def test_again_it_writes_nothing(stage, session):
    """SES-1.4, C21: the first ends it; ten more leave every column, and say so by nothing."""
    stage.guard(reason="task_reassigned", at=LATER)
    ended = stage.session(session)
    with listening() as told:
        results = [stage.guard(reason=reason) for reason in GUARDED * 3]
    assert results == [{"terminated": False}] * 9
    assert stage.session(session) == ended
    assert (told.moved, logged(told)) == ({}, [])


def test_no_session_is_nothing_to_do(stage):
    """SES-1.4: success, and none comes into being; other pairs' live sessions are not this one."""
    stage.create()
    stage.create("T2")
    others = [stage.converse("T2", "ana"), stage.converse("T1", "bob")]
    before = [stage.session(one) for one in others]
    assert stage.guard() == {"terminated": False}
    assert [stage.session(one) for one in others] == before
    assert stage.board.count("sessions") == 2


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_a_terminal_session_is_left_as_it_is(stage, state):
    """SES-1.11: state, reason and end time, by the guarded step and by the cascade; the live one beside it ends."""
    stage.create()
    old = stage.converse(state=state)
    stage.board.execute("UPDATE sessions SET reason = 'of old'")
    before = stage.session(old)
    live = stage.converse()
    assert stage.guard()["session_id"] == str(live)
    assert stage.session(old) == before
    ended = stage.session(live)
    stage.delete()
    assert (stage.session(old), stage.session(live)) == (before, ended)


@pytest.mark.parametrize(("task", "agent"), [("", "ana"), ("T1", ""), ("", "")])
def test_an_empty_id_is_no_question(stage, session, office, task, agent):
    """SES-1.6: no statement goes out, nothing is counted or told; success, by Celery too, where absent is empty."""
    before = stage.session(session)
    with listening() as told, statements(office.engine) as sent:
        assert stage.guard(agent, task, engine=office.engine) == {"terminated": False}
        done = terminate_session.apply((task or None, agent or None, "task_reassigned"))
    assert (done.state, done.result) == ("SUCCESS", {"terminated": False})
    assert (sent, told.moved, logged(told)) == ([], {}, [])
    assert stage.session(session) == before


@pytest.mark.parametrize(("role", "result"), [("runner", "runner"), ("approver", "seat"), (None, None)])
def test_the_celery_task_is_that_same_step(stage, session, office, role, result):
    """SES-1.1, SES-1.3, SES-4.2: it succeeds either way, and its result says which capacity kept the session."""
    if role:
        stage.seat(role, "ana")
    done = terminate_session.apply(("T1", "ana", "participant_removed"))
    assert done.state == "SUCCESS"
    ended = {"terminated": True, "session_id": str(session), "from_state": "idle"}
    assert done.result == ({"terminated": False, "retained": result} if role else ended)


@pytest.mark.parametrize("reason", ["agent_deleted", "", "PARTICIPANT_REMOVED", "task_reassigned ", None, 3, ["x"]])
def test_any_other_reason_is_refused(stage, session, office, reason):
    """SES-1.1: the three and no more; the sentence names them, and nothing is asked or written."""
    before = stage.session(session)
    with statements(office.engine) as sent:
        done = terminate_session.apply(("T1", "ana", reason))
    assert (done.state, type(done.result)) == ("FAILURE", InvalidInput)
    assert all(name in str(done.result) for name in GUARDED)
    assert sent == []
    assert stage.session(session) == before


@pytest.mark.parametrize("wrong", [" ", 7, ["T1"], "T\0", "T\ud800", "é" * 128], ids=repr)
@pytest.mark.parametrize("field", ["task_id", "agent_profile_id"])
def test_an_identifier_that_is_none_is_refused(wrong, field):
    """SES-1.1: typed, and the sentence names the field."""
    given = {"task_id": "T1", "agent_profile_id": "ana", field: wrong}
    with pytest.raises(InvalidInput, match=field):
        termination.guard(given["task_id"], given["agent_profile_id"], "task_reassigned")


def test_a_task_that_does_not_resolve_keeps_it(stage, session):
    """SES-1.5: nobody can say who holds what on a task that is not there: kept, as a read failure."""
    session = stage.converse("nowhere")
    before = stage.session(session)
    with listening() as told:
        assert stage.guard(task="nowhere") == {"terminated": False, "retained": "read_failed"}
    assert stage.session(session) == before
    kept_unread(told, "there is no such task", task="nowhere")


@pytest.mark.parametrize(
    ("setting", "error"), [({"statement_timeout": "200"}, "57014"), ({"lock_timeout": "200"}, "55P03")], ids=str
)
def test_a_question_that_times_out_keeps_it(stage, session, make_test_engine, setting, error):
    """SES-1.5: a statement time-out in Postgres: byte for byte as it was, counted `read_failed`; asked only once."""
    before = stage.session(session)
    engine = make_test_engine(session=setting)
    with (
        holding(stage.engine, "LOCK TABLE seats IN ACCESS EXCLUSIVE MODE"),
        listening() as told,
        statements(engine) as sent,
    ):
        result = stage.guard(engine=engine)
    assert result == {"terminated": False, "retained": "read_failed"}
    assert stage.session(session) == before
    kept_unread(told, error)
    assert len(sent) == 1


def test_a_question_that_is_not_allowed_keeps_it(stage, session, restricted):
    """SES-1.5: by a role that may not read who sits there."""
    before = stage.session(session)
    restricted.revoke("SELECT", "seats")
    with listening() as told:
        assert stage.guard(engine=restricted.engine())["retained"] == "read_failed"
    assert stage.session(session) == before
    kept_unread(told, "42501")


def test_a_database_that_is_not_there_keeps_it(stage, session, make_test_engine):
    """SES-1.5: no connection, no answer: no error either, and no attempt of ADM-7.4."""
    before = stage.session(session)
    nowhere = make_test_engine(url=stage.engine.url.set(port=1).render_as_string(hide_password=False))
    with listening() as told:
        assert stage.guard(engine=nowhere) == {"terminated": False, "retained": "read_failed"}
    assert stage.session(session) == before
    kept_unread(told, "no answer")


def test_a_pool_without_a_connection_to_spare_keeps_it(stage, session, make_test_engine):
    """SES-1.5: nobody could ask."""
    engine = make_test_engine(pool_size=1)
    engine.pool._timeout = 0.1
    with engine.connect(), listening() as told:
        assert stage.guard(engine=engine)["retained"] == "read_failed"
    assert stage.is_live()
    kept_unread(told, "TimeoutError")


@pytest.mark.parametrize("how", ["revoked", "locked"])
def test_a_terminator_that_fails_is_told_and_raises_nothing(stage, session, restricted, office, how):
    """SES-1.5: an error in the log, in the result; the Celery task succeeds, no suppression is counted."""
    before = stage.session(session)
    engine = restricted.engine(lock_timeout="200")
    office = Office(Settings(), engine)
    if how == "revoked":
        restricted.revoke("UPDATE", "sessions")
    error = "42501" if how == "revoked" else "55P03"
    app, terminate_session.app.office = terminate_session.app.office, office
    with holding(stage.engine, "SELECT 1 FROM sessions" + " FOR UPDATE" * (how == "locked")), listening() as told:
        done = terminate_session.apply(("T1", "ana", "task_reassigned"))
    terminate_session.app.office = app
    assert done.state == "SUCCESS"
    assert done.result == {"terminated": False, "error": done.result["error"]}
    assert done.result["error"].startswith(error)
    assert stage.session(session) == before
    fields = {"task_id": "T1", "agent_profile_id": "ana", "reason": "task_reassigned", "error": done.result["error"]}
    assert logged(told) == [("error", "session_termination_failed", fields)]
    assert told.moved == {}


def test_a_connection_that_dies_with_the_question_keeps_it(stage, session, make_test_engine):
    """SES-1.5: the backend is ended while it answers; the next question is answered."""
    before = stage.session(session)
    engine = make_test_engine(pool_size=1)
    locked = holding(stage.engine, "LOCK TABLE seats IN ACCESS EXCLUSIVE MODE")
    with in_background() as start, listening() as told, locked:
        call = start(lambda: stage.guard(engine=engine))
        [pid] = until_blocked(stage.engine)
        terminate(stage.engine, pid)
        assert call.result(20) == {"terminated": False, "retained": "read_failed"}
    assert stage.session(session) == before
    kept_unread(told, "57P01")
    assert stage.guard(engine=engine)["terminated"]


def test_one_connection_is_enough(stage, session, make_test_engine):
    """SES-1.2: the question shares no transaction with the mutation, so a pool of one serves both, one by one."""
    alone = type(stage)(stage.board, make_test_engine(pool_size=1))
    stage.seat("reviewer", "ana")
    alone._messages = 50
    assert alone.remove("reviewer").result["session"]["terminated"]


def test_no_label_is_an_id(stage, session):
    """SES-4.1: two labels, three values each."""
    assert telemetry._SUPPRESSED._labelnames == ("reason", "retained")
    stage.seat("watcher", "ana")
    with listening() as told:
        for reason in GUARDED:
            stage.guard(reason=reason)
            stage.guard(task="nowhere", reason=reason)
    assert told.moved == {
        counted(SUPPRESSED, reason=reason, retained=retained): 1
        for reason in GUARDED
        for retained in ("seat", "read_failed")
    }
