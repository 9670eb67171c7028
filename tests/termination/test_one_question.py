"""There is one question, one terminator, and no path that ends a session past them."""

from __future__ import annotations

import ast
import re
from contextlib import contextmanager

import pytest
from sqlalchemy import event

from office_tasks import termination
from tests.admission import source

WRITES = re.compile(
    r"\b(insert\s+into|update|delete\s+from|merge\s+into)\s+(only\s+)?(public\.)?\"?sessions\b", re.IGNORECASE
)
TAKES_A_SEAT = re.compile(r"seats \(|FROM seats WHERE\b.*RETURNING", re.DOTALL)


def where_used(module, *names):
    return {where for where, tree in source.modules() if source.uses(tree, module, *names)}


def writes_sessions(tree):
    """Yield each text that writes sessions, and each use of their model in a statement."""
    yield from (sql for sql in source.strings(tree) if WRITES.search(sql))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and source._name(node.func) in {"update", "insert", "delete", "_insert"}:
            yield from (ast.unparse(node) for part in node.args if source._name(part) == "Session")


def asks_who_holds_what(tree):
    """Tell whether a module has both halves of the question at hand."""
    imported = set(source.imports(tree))
    return ("db.runner", "RUNNER_OF_TASK") in imported and ("db.slate", "SEATED") in imported


def test_the_question_is_in_one_place():
    """SES-1.7: both halves meet in one module, and one function of another one asks."""
    assert [where for where, tree in source.modules() if asks_who_holds_what(tree)] == ["db/capacity.py"]
    assert where_used("db.slate", "SEATED") == {"db/capacity.py"}
    assert where_used("db.capacity", "retained") == {"office_tasks/termination.py"}


def test_what_the_question_is_made_of_is_defined_once():
    """SES-1.7, SES-2.1, SES-2.2: nobody else spells out a projection of the runner, or a slate."""
    marks = {
        "seats.id DESC": "db/runner.py",
        "nullif(steps.primary_agent_id": "db/runner.py",
        "seats.task_id IS NULL AND": "db/slate.py",
    }
    for mark, home in marks.items():
        assert [w for w, tree in source.modules() if any(mark in sql for sql in source.strings(tree))] == [home], mark


def test_sessions_are_written_in_one_place():
    """SES-1.7, SES-1.10: by the module of their life; its terminator is behind the guard, or the cascade's own."""
    assert {where for where, tree in source.modules() if any(writes_sessions(tree))} == {"db/sessions.py"}
    assert where_used("db.sessions", "complete") == {"office_tasks/termination.py"}
    assert where_used("db.sessions", "complete_all") == {"office_tasks/producers/deletion.py"}


@pytest.mark.parametrize(
    "second",
    [
        "connection.execute(text(\"UPDATE sessions SET state = 'completed'\"))",
        'SQL = f"update  public.sessions SET state = {state}"',
        "connection.execute(update(Session).values(state=1))",
        "connection.execute(update(models.Session))",
    ],
)
def test_a_second_terminator_would_be_seen(second):
    """SES-1.7: the scan finds it, so that it fails the test above."""
    assert list(writes_sessions(source.parse(second)))


def test_the_guarded_step_is_reached_from_one_place():
    """SES-1.1, SES-1.7: the three paths hand their guard to what follows a commit; the Celery task takes it."""
    assert where_used("office_tasks.termination", "end_unless_retained") == {
        "office_tasks/producers/after.py",
        "office_tasks/tasks.py",
    }
    assert where_used("office_tasks.termination", "Guard") == {
        "office_tasks/producers/after.py",
        "office_tasks/producers/assignments.py",
        "office_tasks/producers/mutation.py",
        "office_tasks/producers/participants.py",
    }


@contextmanager
def heard(engine):
    """Yield the list of what goes through the engine: statements, and the ends of transactions."""
    sent = []
    listeners = {
        "before_cursor_execute": lambda _c, _cur, statement, *_: sent.append(statement),
        "commit": lambda connection: connection._is_autocommit_isolation() or sent.append("COMMIT"),
    }
    for name, listener in listeners.items():
        event.listen(engine, name, listener)
    try:
        yield sent
    finally:
        for name, listener in listeners.items():
            event.remove(engine, name, listener)


PATHS = {
    "participant_removed": lambda stage: stage.remove("reviewer"),
    "participant_seat_claimed": lambda stage: stage.claim("reviewer"),
    "task_reassigned": lambda stage: stage.assign(agent="bob"),
}


def test_there_are_three_paths():
    """SES-1.1: exactly these reasons, in this order."""
    assert tuple(PATHS) == termination.GUARDED


@pytest.mark.parametrize("reason", PATHS)
def test_each_path_asks_that_question_after_its_commit(stage, reason):
    """SES-1.2, SES-1.7: once, in a statement of its own, when everything that the mutation wrote is committed."""
    stage.create(assignee="ana" if reason == "task_reassigned" else "cleo")
    stage.add("reviewer", "ana")
    session = stage.converse()
    with heard(stage.engine) as alone:
        stage.guard()
    [question] = alone
    with heard(stage.engine) as sent:
        did = PATHS[reason](stage)
    assert sent.count(question) == 1
    changed = max(n for n, sql in enumerate(sent) if TAKES_A_SEAT.search(sql))
    assert changed < sent.index("COMMIT") < sent.index(question)
    ended = reason != "task_reassigned"
    assert did.result["session"]["terminated"] is ended
    assert stage.session(session)["reason"] == (reason if ended else None)


def test_what_is_no_guarded_path_asks_nothing(stage):
    """SES-1.1: a first assignment, a repeat to the same agent, a move, a new seat, a status."""
    stage.create()
    session = stage.converse()
    before = stage.session(session)
    acts = [
        stage.assign(),
        stage.assign(),
        stage.enter(step="wait"),
        stage.add("reviewer"),
        stage.add("reviewer"),
        stage.status("done"),
        stage.comment(),
    ]
    assert [did.result for did in acts if "session" in did.result] == []
    assert stage.session(session) == before
