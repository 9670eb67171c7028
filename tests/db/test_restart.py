"""C33: Postgres restarts under a warm pool, or takes one backend away; nobody restarts anything by hand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from db.engine import autocommit, make_engine
from db.errors import is_connection_lost
from office_tasks import retries
from office_tasks.producers import assignments, creation
from tests.faults.waits import holding, in_background, terminate, until_blocked
from tests.nodes.waiting import until
from tests.support import T0, after


def warm(board) -> list[int]:
    """Open every connection of the pool; return the backends."""
    engine = board.engine
    connections = [engine.connect() for _ in range(engine.pool.size())]
    pids = [connection.execute(text("SELECT pg_backend_pid()")).scalar_one() for connection in connections]
    for connection in connections:
        connection.close()
    return pids


def as_celery_would(call, *args, **kwargs):
    """Call again, as often as Celery would, whatever its policy says will pass (ADM-7.4)."""
    failures = []

    def attempt():
        try:
            return [call(*args, **kwargs)]
        except Exception as error:
            kind = retries.kind_of(error)
            if kind is None or not retries.left(kind, {kind.name: len(failures)}):
                raise
            failures.append(error)
            return None

    return until(attempt, what="an attempt that succeeds")[0], failures


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_twenty_admissions_after_a_restart(own_server, own_board, how):
    """C33, OPS-5: 4 warm connections, a restart, then 20 admissions from 4 threads: 20 rows."""
    pids = warm(own_board)
    if how == "restart":
        own_server.restart()
    else:
        own_server.kill()
        own_server.start()

    def ask(n: int):
        return as_celery_would(own_board.ask, wake_id=f"w{n}", payload={"task_id": f"T{n}"})

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(ask, range(20)))

    assert [str(answer.outcome) for answer, _ in answers] == ["queued"] * 20
    assert [failures for _, failures in answers if failures] == [], "the stale connections were found before use"
    assert own_board.count("runs") == 20
    assert not set(pids) & set(warm(own_board))


def test_an_outage_is_an_error_that_passes(own_server, own_board):
    """C33, OPS-5: while Postgres is away each call fails, retriably; when it is back the same engine works."""
    warm(own_board)
    own_server.kill()
    wake = own_board.wake()

    for _ in range(3):
        with pytest.raises(DBAPIError) as caught:
            own_board.ask(wake_id=wake.id)
        assert retries.kind_of(caught.value) is retries.CONNECTION_LOST

    own_server.start()
    assert own_board.ask(wake_id=wake.id).outcome == "queued"
    assert [own_board.ask(after(minutes=n)).outcome for n in range(1, 6)] == ["queued"] * 5


def test_a_restart_under_load_loses_nothing(own_server, own_board):
    """OPS-5, ADM-10.3: 60 wakes are asked while Postgres restarts twice: retried as Celery would, each is one row."""

    def ask(n: int):
        return as_celery_would(own_board.ask, wake_id=f"w{n}", payload={"task_id": f"T{n}"}, key=f"k{n}")

    with ThreadPoolExecutor(4) as threads:
        calls = [threads.submit(ask, n) for n in range(60)]
        until(lambda: sum(call.done() for call in calls) >= 10, what="some load")
        own_server.restart()
        until(lambda: sum(call.done() for call in calls) >= 30, what="more load")
        own_server.restart()
        outcomes = [str(call.result()[0].outcome) for call in calls]

    assert outcomes == ["queued"] * 60
    assert own_board.count("runs") == own_board.count("wakes") == 60


def test_a_backend_that_dies_in_a_mutation_is_retried_to_one_row(own_board):
    """C33: ended in the middle of its transaction, the call leaves nothing, its retry one row; the next 5 work."""
    engine = make_engine(own_board.engine.url.render_as_string(hide_password=False))
    creation.create_task(engine, "m0", "acme", "a task", task_id="T1", step_id="start", instant=T0)

    with holding(own_board.engine, "SELECT 1 FROM tasks FOR UPDATE") as held, in_background() as start:
        call = start(assignments.assign_task, engine, "m1", "T1", "ana", "bob", T0)
        terminate(own_board.engine, until_blocked(own_board.engine, like="%FOR UPDATE%")[0])
        error = call.exception()
        held.rollback()

    assert is_connection_lost(error)
    assert retries.kind_of(error) is retries.CONNECTION_LOST
    assert own_board.rows("SELECT assignment_generation AS n FROM tasks")[0]["n"] == 0
    retried = assignments.assign_task(engine, "m1", "T1", "ana", "bob", T0)
    assert (retried["generation"], retried["wakes"][0]["outcome"]) == (1, "queued")
    assert own_board.count("runs") == 1
    nexts = [assignments.assign_task(engine, f"m{n}", "T1", "ana", instant=after(minutes=n)) for n in range(2, 7)]
    assert [(one["generation"], one["wakes"][0]["outcome"]) for one in nexts] == [(n, "queued") for n in range(2, 7)]
    engine.dispose()


def test_a_backend_that_dies_in_an_admission_ends_in_one_row(own_board):
    """C33, ADM-7.4: the deciding statement dies once, is asked again on a fresh connection, and decides once."""
    engine = make_engine(own_board.engine.url.render_as_string(hide_password=False))
    with autocommit(engine) as connection:
        connection.execute(text("SELECT 1"))
    own_board.engine, engine = engine, own_board.engine

    with holding(engine, "LOCK TABLE runs IN SHARE MODE") as held, in_background() as start:
        call = start(own_board.ask, wake_id="w1")
        terminate(engine, until_blocked(engine)[0])
        until_blocked(engine)
        held.rollback()

    assert call.result().outcome == "queued"
    assert own_board.count("runs") == 1
    assert [own_board.ask(after(minutes=n)).outcome for n in range(1, 6)] == ["queued"] * 5
    own_board.engine.dispose()
    own_board.engine = engine
