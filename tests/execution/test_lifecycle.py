"""The three lives, over every state and every event: the row moves as its table says, or nobody writes it."""

from __future__ import annotations

import re
import uuid

import pytest

from db import claims, endings, executions, owed, sessions
from db.endings import Ending
from db.engine import autocommit
from db.lifecycle import RUN, SESSION, WAKE
from db.mutations import wakes_of
from office_tasks.admission import admit, poison, stored
from tests.admission import source
from tests.execution.seen import row_of
from tests.support import T0

MACHINES = {"runs": RUN, "wakes": WAKE, "sessions": SESSION}
STATE = {"runs": "status", "wakes": "state", "sessions": "state"}
STATES = {
    "runs": ("queued", "claimed", "finished", "failed", "cancelled"),
    "wakes": ("owed", "decided", "superseded"),
    "sessions": ("idle", "running", "completed", "failed", "cancelled"),
}
# Of the schema alone: what ends a session otherwise than complete is nobody's event yet.
NO_EVENT_LEADS_THERE = {"sessions": {"failed", "cancelled"}}

TOKEN = uuid.uuid4()
ENDINGS = {
    "finish": Ending("finish", result="{}"),
    "retry": Ending("retry", error="E", retry_at=T0),
    "fail": Ending("fail", error="E"),
    "cancel": Ending("cancel", cancel_reason="task_gone"),
}


class Runs:
    """A run in any state, and the functions that the code has for its events."""

    def put(self, board, queue, state):
        self.id = queue()
        if state == "queued":
            return self.id
        self.fire(board, "claim")
        if state != "claimed":
            self.fire(board, {"finished": "finish", "failed": "fail", "cancelled": "cancel"}[state])
        return self.id

    def fire(self, board, event):
        with board.engine.begin() as connection:
            if event == "claim":
                claims.claim(connection, TOKEN)
            # A run in line is cancelled by an order; one that is executed ends so.
            elif not endings.end(connection, self.id, TOKEN, ENDINGS[event]) and event == "cancel":
                executions.cancel(connection, self.id, executions.OPERATOR)


class Wakes:
    """An assignment's wake in any state; superseding it needs a later assignment, which always stands."""

    def put(self, board, on_board, state):
        self.id = "m1#1"
        on_board("T1")
        board.execute("UPDATE tasks SET assignment_generation = 2")
        board.execute(
            "INSERT INTO mutations (id, kind, actor_type, facts, committed_at) VALUES ('m1', 'x', 'user', '{}', :at)",
            at=T0,
        )
        board.execute(
            "INSERT INTO wakes (id, mutation_id, reason, agent_profile_id, payload, key, generation, producer, "
            "requested_at, state) VALUES (:id, 'm1', 'task_assigned', 'ana', :payload, 'k', 1, 'test', :at, 'owed')",
            id=self.id, payload='{"task_id": "T1"}', at=T0,
        )  # fmt: skip
        if state != "owed":
            self.fire(board, {"decided": "decide", "superseded": "supersede"}[state])
        return self.id

    def fire(self, board, event):
        with autocommit(board.engine) as connection:
            [row] = wakes_of(connection, "m1")
            if event == "supersede":
                owed.supersede(connection, "acme", T0)
            elif event == "poison":
                poison(board.engine, stored(row))
            else:
                admit(board.engine, stored(row), instant=T0)


class Sessions:
    """A session in any state, and a run of its pair that starts in it or rests."""

    def put(self, board, queue, state):
        self.id, self.run_id = uuid.uuid4(), queue()
        ended = None if state in ("idle", "running") else T0
        board.execute(
            "INSERT INTO sessions (id, task_id, agent_profile_id, state, ended_at) "
            "VALUES (:id, 'T1', 'ana', :state, :ended)",
            id=self.id, state=state, ended=ended,
        )  # fmt: skip
        return self.id

    def fire(self, board, event):
        with board.engine.begin() as connection:
            if event == "start":
                sessions.obtain(connection, self.run_id, "T1", "ana", uuid.uuid4())
            elif event == "complete":
                sessions.complete(connection, "T1", "ana", "participant_removed")
            else:
                sessions.rest(connection, self.id)


@pytest.fixture
def put(board, queue, on_board):
    """Return a function that puts a row into a state; returns whoever fires its events, and its id."""
    lives = {"runs": (Runs, queue), "wakes": (Wakes, on_board), "sessions": (Sessions, queue)}

    def into(table, state):
        life, making = lives[table]
        made = life()
        row_id = made.put(board, making, state)
        assert _state(board, table, row_id) == state
        return made, row_id

    return into


def _state(board, table, row_id):
    return board.rows(f"SELECT {STATE[table]} AS state FROM {table} WHERE id = :id", id=row_id)[0]["state"]


# Other ways to the same event: what is given up is decided too.
WAYS = {("wakes", "poison"): "decide"}
PAIRS = [
    pytest.param(table, state, event, id=f"{table}-{state}-{event}")
    for table, machine in MACHINES.items()
    for state in STATES[table]
    for event in (*machine, *(way for where, way in WAYS if where == table))
]


@pytest.mark.parametrize(("table", "state", "event"), PAIRS)
def test_every_event_in_every_state(board, put, table, state, event):
    """8-engineering 1, 8-engineering 5, REC-2.1, REC-2.5, ADM-10.1: moved as drawn, or not written at all."""
    life, row_id = put(table, state)
    before = row_of(board, table, row_id)
    life.fire(board, event)
    move = MACHINES[table][WAYS.get((table, event), event)]
    if state in move.sources:
        assert _state(board, table, row_id) == move.target
        assert row_of(board, table, row_id)["writer"] != before["writer"]
    else:
        assert row_of(board, table, row_id) == before


@pytest.mark.parametrize("table", MACHINES)
def test_the_schema_allows_these_states_and_no_other(board, table):
    """8-engineering 5, REC-2.1, REC-2.5: each word of the CHECK is a state of the table of moves."""
    constraint = f"ck_{table}_{STATE[table]}"
    [row] = board.rows("SELECT pg_get_constraintdef(oid) AS sql FROM pg_constraint WHERE conname = :name",
                       name=constraint)  # fmt: skip
    allowed = set(re.findall(r"'(\w+)'", row["sql"]))
    moves = MACHINES[table].values()
    tabled = {move.target for move in moves} | {state for move in moves for state in move.sources}
    assert allowed == set(STATES[table])
    assert allowed - tabled == NO_EVENT_LEADS_THERE.get(table, set())
    assert tabled <= allowed


WRITES = re.compile(rf"\b(UPDATE|INSERT INTO|DELETE FROM) ({'|'.join(MACHINES)})\b")
SPELT = re.compile(rf"'({'|'.join({state for states in STATES.values() for state in states})})'")


def test_no_write_spells_a_state():
    """8-engineering 1: what a write of a run, a wake or a session expects and sets is read from the table of moves."""
    written = [
        sql
        for where, tree in source.modules("db")
        if "/migrations/" not in where
        for sql in source.strings(tree)
        if WRITES.search(sql)
    ]
    assert len(written) > 10
    assert [sql for sql in written if SPELT.search(sql)] == []
