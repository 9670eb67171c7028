"""A caller's own transaction: what it asks for follows if, and only if, that transaction commits (PRO-6.3)."""

from __future__ import annotations

from functools import partial

import pytest
from kombu.exceptions import OperationalError
from sqlalchemy import create_engine, event, text
from sqlalchemy.orm import Session

from office_tasks.errors import InvalidInput, NotFound
from office_tasks.in_session import assign, enqueue
from office_tasks.producers.creation import create_task
from office_tasks.tasks import settle_mutation
from recovery.relay import relay_once
from tests.faults.waits import in_background
from tests.support import T0

TABLES = ("mutations", "wakes", "events", "runs", "business")
LISTENED = ("after_commit", "after_soft_rollback", "after_transaction_end")


@pytest.fixture
def theirs(board):
    """The caller's own engine, a plain one, on the office's database; T1 and a table of the caller's stand in it."""
    create_task(board.engine, "c1", "acme", "one", task_id="T1", step_id="start", instant=T0)
    board.execute("CREATE TABLE business (id text PRIMARY KEY)")
    board.execute("DELETE FROM events; DELETE FROM mutations")
    engine = create_engine(board.engine.url)
    yield engine
    engine.dispose()


@pytest.fixture
def sent(monkeypatch):
    """The ids of the mutations that a worker is asked to settle; nothing leaves the process."""
    ids = []
    monkeypatch.setattr(settle_mutation, "apply_async", lambda args, **_: ids.extend(args))
    return ids


def do_business(session, name="order"):
    session.execute(text("INSERT INTO business VALUES (:id)"), {"id": name})


def counts(board):
    return {table: n for table in TABLES if (n := board.count(table))}


def test_a_commit_carries_everything(board, theirs, sent):
    """PRO-6.3: the business row, the mutation, the owed wake and the event at once; then a worker is asked."""
    with Session(theirs) as session:
        do_business(session)
        mutation_id = assign(session, "T1", "ana")
        assert (counts(board), sent) == ({}, [])
        session.commit()
    assert counts(board) == {"mutations": 1, "wakes": 1, "events": 1, "business": 1}
    assert board.wakes()[0]["state"] == "owed"
    assert sent == [mutation_id]


@pytest.mark.parametrize("end", [Session.rollback, Session.close])
def test_a_rollback_leaves_nothing(board, theirs, sent, end):
    """PRO-6.3: however the transaction ends without a commit; and the session's next commit sends only its own."""
    with Session(theirs) as session:
        do_business(session)
        assign(session, "T1", "ana")
        enqueue(session, "bob", "manual_resume")
        end(session)
        assert (counts(board), sent) == ({}, [])
        second = enqueue(session, "bob", "manual_resume")
        session.commit()
    assert counts(board) == {"mutations": 1, "wakes": 1}
    assert sent == [second]


def test_a_savepoint_takes_its_own_back(board, theirs, sent):
    """PRO-6.3: what was asked inside it falls, the rest stands; one message each, at the end."""
    with Session(theirs) as session:
        before = enqueue(session, "ana", "before")
        savepoint = session.begin_nested()
        enqueue(session, "ana", "inside")
        with session.begin_nested():
            enqueue(session, "ana", "further inside")
        savepoint.rollback()
        with session.begin_nested():
            kept = enqueue(session, "ana", "kept")
        assert sent == [], "releasing a savepoint commits nothing"
        last = enqueue(session, "ana", "after")
        session.commit()
    assert sent == [before, kept, last]
    assert [wake["reason"] for wake in board.wakes()] == ["before", "kept", "after"]


def test_a_savepoint_in_a_transaction_that_rolls_back(board, theirs, sent):
    """PRO-6.3: a released savepoint falls with the transaction around it."""
    with Session(theirs) as session:
        with session.begin_nested():
            assign(session, "T1", "ana")
        session.rollback()
    assert (counts(board), sent) == ({}, [])


def test_two_sessions_are_two_transactions(board, theirs, sent):
    """PRO-6.3: one commits, the other rolls back; each carries its own."""
    with Session(theirs) as one, Session(theirs) as two:
        kept = enqueue(one, "ana", "one")
        enqueue(two, "ana", "two")
        two.rollback()
        one.commit()
    assert sent == [kept]
    assert [wake["reason"] for wake in board.wakes()] == ["one"]


def test_nothing_is_sent_for_a_transaction_that_asked_for_nothing(theirs, sent):
    """PRO-6.3: an empty transaction, one with business alone, and one before and one after an assignment."""
    with Session(theirs) as session:
        session.commit()
        do_business(session)
        session.commit()
        mutation_id = assign(session, "T1", "ana")
        session.commit()
        do_business(session, "another")
        session.commit()
    assert sent == [mutation_id]


def test_listeners_do_not_pile_up(theirs, sent):
    """PRO-6.3: a session that lives long has one of each, and sends each mutation once."""
    with Session(theirs) as session:
        asked = []
        for number in range(20):
            asked += [enqueue(session, "ana", f"r{number}"), enqueue(session, "bob", f"r{number}")]
            session.commit()
        listeners = {name: len(list(getattr(session.dispatch, name))) for name in LISTENED}
    assert listeners == dict.fromkeys(LISTENED, 1)
    assert sent == asked


def test_a_refused_request_leaves_the_transaction_usable(board, theirs, sent):
    """PRO-6.3, PRO-3.5: a typed error, nothing written, nothing sent; the business goes on."""
    with Session(theirs) as session:
        do_business(session)
        for refused, error in (
            (partial(assign, session, "nowhere", "ana"), NotFound),
            (partial(assign, session, "T1", "nobody"), NotFound),
            (partial(assign, session, "", "ana"), InvalidInput),
            (partial(enqueue, session, "ana", ""), InvalidInput),
        ):
            with pytest.raises(error):
                refused()
        session.commit()
    assert (counts(board), sent) == ({"business": 1}, [])


def test_the_broker_is_down_at_the_commit(board, theirs, at, monkeypatch):
    """PRO-6.3, PRO-6.2: the commit stands, the broker is tried once, not once a wake; the relay admits all, once."""
    tries = []

    def refuse(args, **_):
        tries.append(args)
        raise OperationalError

    monkeypatch.setattr(settle_mutation, "apply_async", refuse)
    with Session(theirs) as session:
        do_business(session)
        asked = [assign(session, "T1", "ana"), enqueue(session, "bob", "manual_resume")]
        session.commit()
    assert tries == [(asked[0],)]
    assert relay_once(at(days=10_000), None)["settled"] == 2
    assert [(wake["state"], wake["outcome"]) for wake in board.wakes()] == [("decided", "queued")] * 2
    assert relay_once(at(days=10_000), None)["settled"] == 0
    assert board.count("runs") == 2


def test_admission_never_uses_the_callers_connection(board, theirs, sent, at):
    """PRO-6.3, ADM-2.5: while the caller's transaction is open nothing is admitted; afterwards not on its backend."""
    seen = []
    with Session(theirs) as session:
        assign(session, "T1", "ana")
        event.listen(theirs, "before_cursor_execute", lambda *call: seen.append(call[2]))
        assert relay_once(at(days=10_000), None)["settled"] == 0
        session.commit()
        assert relay_once(at(days=10_000), None)["settled"] == 1
    assert seen == []
    assert board.count("runs") == 1


def test_two_callers_on_one_task_get_two_generations(board, theirs, sent, at):
    """PRO-2.4, PRO-6.3: the task's row stays locked until the first transaction ends; both wakes follow."""

    def second():
        with Session(theirs) as session:
            found = assign(session, "T1", "bob")
            session.commit()
            return found

    with Session(theirs) as session, in_background() as start:
        first = assign(session, "T1", "ana")
        call = start(second)
        assert not call.done()
        session.commit()
        mutations = [first, call.result(10)]
    generations = [board.rows("SELECT generation FROM mutations WHERE id = :id", id=each) for each in mutations]
    assert generations == [[{"generation": 1}], [{"generation": 2}]]
    assert relay_once(at(days=10_000), None)["settled"] == 2
    assert board.count("runs") == 2
