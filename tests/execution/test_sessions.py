"""The session of a (task, agent) pair: taken up while it lives, new when it does not, never touched once it ended."""

from __future__ import annotations

import uuid

import pytest

from db import endings, sessions
from db.endings import Ending
from db.states import SESSION_LIVE, SESSION_TERMINAL
from office_tasks.execution.begin import begin
from office_tasks.execution.end import end
from tests.execution.handlers import raising
from tests.faults.waits import in_background, until_blocked
from tests.support import T0, after

FINISH = Ending("finish", result="null")


def all_sessions(board):
    return board.rows("SELECT * FROM sessions ORDER BY created_at, id")


@pytest.fixture
def store(board):
    """Return a function that puts a session on the board."""

    def put(state, task="T1", agent="ana"):
        row = {"id": uuid.uuid4(), "task": task, "agent": agent, "state": state,
               "at": T0, "ended": None if state in SESSION_LIVE else T0}  # fmt: skip
        board.execute(
            "INSERT INTO sessions (id, task_id, agent_profile_id, state, created_at, updated_at, ended_at) "
            "VALUES (:id, :task, :agent, :state, :at, :at, :ended)",
            **row,
        )
        return row["id"]

    return put


@pytest.fixture
def two_begun(board, queue, on_board, virtual):
    """Two executions of one pair at once, in their one session."""
    board.execute("UPDATE agents SET max_concurrent_sessions = 2 WHERE id = 'ana'")
    on_board("T1")
    for n in range(2):
        queue(after(seconds=-n), task="T1")
    return begin(virtual), begin(virtual)


def test_the_first_run_of_a_pair_begins_a_session(board, queue, on_board, execute, time):
    """REC-2.5: running while the handler works, idle after; named by the run, and by what the handler is given."""
    on_board("T1")
    run_id, seen = queue(task="T1"), []

    def work(context):
        seen.append((context.session, all_sessions(board)[0]))

    time.move(minutes=1)
    assert execute(work).result == "finished"
    [(given, during)], [after_it] = seen, all_sessions(board)
    assert (given.id, given.created_at, given.is_new) == (during["id"], after(minutes=1), True)
    assert (during["task_id"], during["agent_profile_id"], during["state"]) == ("T1", "ana", "running")
    assert after_it == {**during, "state": "idle"}
    assert board.run(run_id)["session_id"] == given.id


@pytest.mark.parametrize("state", SESSION_LIVE)
def test_a_live_one_is_taken_up(board, queue, on_board, execute, store, time, state):
    """REC-2.5: idle, or left running by somebody who died; not a second one."""
    session_id = store(state)
    on_board("T1")
    queue(task="T1")
    time.move(minutes=1)
    given = []
    execute(lambda context: given.append(context.session))
    assert [(one.id, one.created_at, one.is_new) for one in given] == [(session_id, T0, False)]
    [row] = all_sessions(board)
    assert (row["state"], row["created_at"], row["updated_at"]) == ("idle", T0, after(minutes=1))


@pytest.mark.parametrize("state", SESSION_TERMINAL)
def test_one_that_ended_is_not_taken_up(board, queue, on_board, execute, store, untouched, state):
    """REC-2.5, 8-engineering 1: the next run begins a new one; the old row is as it was, in every column."""
    old = store(state)
    same = untouched("sessions", old)
    on_board("T1")
    queue(task="T1")
    given = []
    execute(lambda context: given.append(context.session))
    assert given[0].is_new
    assert given[0].id != old
    assert same()
    assert len(all_sessions(board)) == 2


@pytest.mark.parametrize(("task", "agent"), [("T2", "ana"), ("T1", "bob")])
def test_another_pairs_session_is_not_taken_up(queue, on_board, execute, store, untouched, task, agent):
    """REC-2.5: neither the agent's on another task, nor another agent's on this task."""
    other = untouched("sessions", store("idle", task, agent))
    on_board("T1")
    queue(task="T1")
    given = []
    execute(lambda context: given.append(context.session))
    assert given[0].is_new
    assert other()


@pytest.mark.parametrize("first", [0, 1])
def test_two_runs_of_a_pair_share_it_and_it_rests_with_the_last(board, virtual, two_begun, first):
    """REC-2.5: whichever ends first leaves it running."""
    assert len({begun.session.id for begun in two_begun}) == 1
    assert [begun.session.is_new for begun in two_begun] == [True, False]
    states = []
    for n in (first, 1 - first):
        end(virtual, two_begun[n].run, FINISH)
        states += [row["state"] for row in all_sessions(board)]
    assert states == ["running", "idle"]


def test_two_runs_that_end_at_once_let_it_rest(board, virtual, make_test_engine, two_begun):
    """REC-2.5, 8-engineering 6: the second waits for the session, and then sees that the first is over."""
    one, other = (begun.run for begun in two_begun)
    with in_background() as start, virtual.connect() as connection:
        endings.end(connection, one.id, one.lease_token, FINISH)
        call = start(end, make_test_engine(), other, FINISH)
        until_blocked(board.engine, like="%FROM sessions%")
        connection.commit()
        assert call.result().result == "finished"
    assert [row["state"] for row in all_sessions(board)] == ["idle"]


def test_one_that_starts_as_the_other_ends_keeps_it_running(board, virtual, make_test_engine, two_begun, queue):
    """REC-2.5: obtained in an open transaction; the end of the last other run waits, and lets it run."""
    one, other = (begun.run for begun in two_begun)
    end(virtual, one, FINISH)
    queue(after(seconds=5), task="T1")
    with in_background() as start, virtual.connect() as connection:
        third = _claimed_in(connection)
        call = start(end, make_test_engine(), other, FINISH)
        until_blocked(board.engine, like="%FROM sessions%")
        connection.commit()
        call.result()
    assert [row["state"] for row in all_sessions(board)] == ["running"]
    end(virtual, third, FINISH)
    assert [row["state"] for row in all_sessions(board)] == ["idle"]


def _claimed_in(connection):
    from db import claims

    run = claims.claim(connection, uuid.uuid4())
    sessions.obtain(connection, run.id, run.task_id, run.agent_profile_id, uuid.uuid4())
    return run


@pytest.mark.parametrize("first_commits", [True, False])
def test_two_that_obtain_at_once_get_one(board, queue, virtual, make_test_engine, first_commits):
    """REC-2.5: the second waits for the first one's insert: it takes it up, or makes its own."""
    runs = [queue(after(minutes=n)) for n in range(2)]
    ids = [uuid.uuid4() for _ in range(2)]

    def obtain(engine):
        with engine.begin() as connection:
            return sessions.obtain(connection, runs[1], "T1", "ana", ids[1])

    with in_background() as start, virtual.connect() as connection:
        sessions.obtain(connection, runs[0], "T1", "ana", ids[0])
        call = start(obtain, make_test_engine())
        until_blocked(board.engine, like="%INSERT INTO sessions%")
        connection.commit() if first_commits else connection.rollback()
        got = call.result()
    assert (got.id, got.is_new) == ((ids[0], False) if first_commits else (ids[1], True))
    assert [row["id"] for row in all_sessions(board)] == [got.id]


ENDS = {
    "finish": lambda _context: {"done": True},
    "retry": raising(RuntimeError("E")),
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("state", SESSION_TERMINAL)
def test_one_that_ended_meanwhile_is_not_written(board, queue, on_board, execute, untouched, how, state):
    """REC-2.5, 8-engineering 1: the run goes on and ends as it would; every column of its session stands."""
    on_board("T1")
    run_id, same = queue(task="T1"), []

    def work(context):
        board.execute(
            "UPDATE sessions SET state = :state, reason = 'R', ended_at = :at, updated_at = :at", state=state, at=T0
        )
        same.append(untouched("sessions", context.session.id))
        return ENDS[how](context)

    assert execute(work).result == {"finish": "finished", "retry": "retried"}[how]
    assert same[0]()
    assert board.run(run_id)["session_id"] == all_sessions(board)[0]["id"]


def test_the_next_attempt_takes_up_the_session(board, queue, on_board, execute, time):
    """REC-2.5, REC-2.7: a retry is the same conversation; idle until then."""
    on_board("T1")
    queue(task="T1")
    given = []

    def work(context):
        given.append(context.session)
        raise RuntimeError

    execute(work)
    assert [row["state"] for row in all_sessions(board)] == ["idle"]
    time.move(hours=1)
    execute(work)
    assert [(one.id, one.is_new) for one in given] == [(given[0].id, True), (given[0].id, False)]


def test_a_session_that_is_gone_stops_no_run(board, queue, on_board, execute):
    """REC-2.5: deleted while the run executes; the run ends all the same."""
    on_board("T1")
    queue(task="T1")
    assert execute(lambda _context: board.execute("DELETE FROM sessions")).result == "finished"
    assert all_sessions(board) == []
