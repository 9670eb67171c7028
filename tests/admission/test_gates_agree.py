"""The one round trip of the common wake and the six gates are two readings of one contract: here they are compared."""

from __future__ import annotations

import itertools

import pytest
from sqlalchemy import text

from db.facts import Facts, nothing_stands_in_the_way
from db.states import AGENT_STATUSES
from office_tasks.admission import ASSIGNMENT_ALLOWANCE, GATES
from office_tasks.admission.admit import _questions
from office_tasks.ids import new_id
from tests.support import T0, Board

SOME_RUN = new_id()
# Every answer that each question can have. A count is never NULL: one that could not be read fails the statement.
ANSWERS = {
    "agent_status": (None, *AGENT_STATUSES),
    "paused": (None, False, True),
    "duplicate_of": (None, SOME_RUN),
    "merge_into": (None, SOME_RUN),
    "assignments": (0, 1, ASSIGNMENT_ALLOWANCE - 1, ASSIGNMENT_ALLOWANCE, ASSIGNMENT_ALLOWANCE + 1, 10**6),
}
TYPES = {
    "agent_status": "text",
    "paused": "boolean",
    "duplicate_of": "uuid",
    "merge_into": "uuid",
    "assignments": "bigint",
}
AGENT = {"task_id": "T1", "actor_type": "agent"}
WAKES = {
    "keyless user": Board.wake(payload={"task_id": "T1"}),
    "keyed user": Board.wake(payload={"task_id": "T1"}, key="k"),
    "comment": Board.wake(reason="task_comment", payload=AGENT, key="task_comment:c:ana"),
    "keyless agent": Board.wake(payload=AGENT),
    "keyed agent": Board.wake(payload=AGENT, key="k"),
    "agent assignment with a comment key": Board.wake(payload=AGENT, key="task_comment:c"),
    "unattributed": Board.wake(payload={"actor_type": "agent", "task_id": 7}, key="k"),
    "taskless agent": Board.wake(payload={"actor_type": "agent"}),
}


def by_the_gates(wake, facts):
    """Return the name of the gate that decides."""
    return next(gate.decide.__name__ for gate in GATES if gate.decide(wake, facts))


def by_the_statement(connection, questions, readings):
    """Evaluate the statement's own condition over all readings, in Postgres."""
    columns = ", ".join(f"CAST({name} AS {TYPES[name]}) AS {name}" for name in questions)
    values = ", ".join(
        "(" + ", ".join([str(n), *("NULL" if value is None else f"'{value}'" for value in reading)]) + ")"
        for n, reading in enumerate(readings)
    )
    condition = nothing_stands_in_the_way(questions)
    query = (
        f"SELECT n, coalesce({condition}, false) FROM (SELECT n, {columns} FROM "
        f"(VALUES {values}) raw (n, {', '.join(questions)})) facts ORDER BY n"
    )
    found = connection.execute(text(query), {"allowance": ASSIGNMENT_ALLOWANCE})
    return [passes for _, passes in found]


@pytest.mark.parametrize("kind", WAKES)
def test_the_statement_inserts_exactly_when_every_gate_lets_pass(connection, kind):
    """ADM-2.1, ADM-2.5: over every combination of answers, for every kind of wake."""
    wake = WAKES[kind]
    questions = _questions(wake)
    readings = list(itertools.product(*(ANSWERS[question] for question in questions)))
    facts = [Facts(T0, **dict(zip(questions, reading, strict=True))) for reading in readings]
    expected = [by_the_gates(wake, seen) == "insert" for seen in facts]
    assert by_the_statement(connection, questions, readings) == expected
    assert any(expected)
    assert not all(expected)


def test_every_gate_that_reads_is_asked_and_conditioned():
    """ADM-2.1: no gate's question is missing from the statement of a wake that needs them all."""
    asked = _questions(WAKES["keyed agent"])
    assert list(asked) == [gate.reads for gate in GATES if gate.reads] == list(ANSWERS)
    assert nothing_stands_in_the_way(asked).count(" AND ") == len(asked) - 1


@pytest.mark.parametrize(
    ("kind", "unasked"),
    [
        ("keyless user", {"duplicate_of", "assignments"}),
        ("keyed user", {"assignments"}),
        ("comment", {"merge_into", "assignments"}),
        ("keyless agent", {"duplicate_of"}),
        ("unattributed", {"merge_into", "assignments"}),
        ("taskless agent", {"duplicate_of", "assignments"}),
    ],
)
def test_only_a_question_that_cannot_matter_is_not_asked(kind, unasked):
    """ADM-3.1, ADM-4.1, ADM-4.3, ADM-5.1: which gate has nothing to say about which wake."""
    assert set(ANSWERS) - set(_questions(WAKES[kind])) == unasked
