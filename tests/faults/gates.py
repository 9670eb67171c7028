"""One gate's own read, made to fail by a real fault on a real connection while the others work."""

from __future__ import annotations

import uuid

from sqlalchemy import text

from tests.faults.waits import PATIENTLY

# By gate: what its own read asks for, a table it scans, a column that no gate before it reads.
QUESTION = {1: "agent_status", 2: "paused", 3: "duplicate_of", 4: "merge_into", 5: "assignments"}
TABLE = {1: "agents", 2: "workspaces", 3: "runs", 4: "runs", 5: "runs"}
# What stands in the statement of that read, alone or with the others, and in no statement that writes a decision.
MARK = {gate: f"% AS {question}%" for gate, question in QUESTION.items()} | {5: "%count(*)%"}
HIDDEN = {
    1: ("agents", "status"),
    2: ("pauses", "resumed_at"),
    3: ("runs", "idempotency_key"),
    4: ("runs", "task_scope"),
    5: ("runs", "actor_type"),
}

# What the gate decides about `WAKE` on its `board_for`, when it can read.
DECIDES = {1: "queued", 2: "queued", 3: "deduped", 4: "coalesced", 5: "queued"}
WAKE = {"key": "k1", "payload": {"task_id": "T1", "actor_type": "agent", "actor_id": "bob"}}

_LATCH = 4711


def board_for(board, gate: int) -> int:
    """Put the row on the board that the gate's read would find; return how many runs stand."""
    if gate in (3, 4, 5):
        board.assigned(task="T1", agent="ana" if gate == 4 else "bob", key="k1" if gate == 3 else "other")
    return board.count("runs")


class Restricted:
    """A role that may do what the admission engine does, until a fault takes something away from it."""

    def __init__(self, board, make_test_engine) -> None:
        self.board = board
        self.role = f"office_test_{uuid.uuid4().hex[:12]}"
        self._make = make_test_engine
        board.execute(f"CREATE ROLE {self.role}")
        board.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {self.role}")
        board.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {self.role}")

    def engine(self, **session):
        """Return an engine whose sessions are the role's, with those settings."""
        return self._make(session={"role": self.role, **session})

    def drop(self) -> None:
        self.board.execute(f"DROP OWNED BY {self.role}")
        self.board.execute(f"DROP ROLE {self.role}")

    def hide(self, table: str, column: str) -> None:
        """Take away SELECT on one column, which only a table without a table-wide grant can have taken away."""
        self._allow_the_others("SELECT", table, column)

    def _allow_the_others(self, privilege: str, table: str, column: str) -> None:
        columns = self.board.rows(
            "SELECT string_agg(column_name, ', ') AS rest FROM information_schema.columns "
            "WHERE table_schema = 'public' AND table_name = :table AND column_name <> :column",
            table=table,
            column=column,
        )
        self.revoke(privilege, table)
        self.board.execute(f"GRANT {privilege} ({columns[0]['rest']}) ON {table} TO {self.role}")

    def revoke(self, privilege: str, table: str) -> None:
        self.board.execute(f"REVOKE {privilege} ON {table} FROM {self.role}")

    def forbid_update(self, table: str, column: str) -> None:
        """Take away UPDATE on one column."""
        self._allow_the_others("UPDATE", table, column)

    def stall(self, gate: int, only: str = "true") -> None:
        """Make the read of one gate wait for a latch: a policy of its table asks for it in that gate's statements.

        A policy is asked row by row: call `board_for(gate)` first, so that there is a row to ask about.

        Args:
            gate: its number.
            only: a condition on the table's rows outside which nothing waits.
        """
        self.board.execute(f"""
            CREATE FUNCTION stalled() RETURNS boolean LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$ BEGIN
            IF current_query() LIKE '{MARK[gate]}' THEN PERFORM pg_advisory_xact_lock_shared({_LATCH}); END IF;
            RETURN true; END $$""")
        using = "stalled()" if only == "true" else f"CASE WHEN {only} THEN stalled() ELSE true END"
        self.board.execute(f"CREATE POLICY stall ON {TABLE[gate]} USING ({using}) WITH CHECK (true)")
        self.board.execute(f"ALTER TABLE {TABLE[gate]} ENABLE ROW LEVEL SECURITY")

    def latch(self):
        """Return a connection that holds the latch until it is closed."""
        held = self.board.engine.connect()
        held.execute(PATIENTLY)
        held.execute(text(f"SELECT pg_advisory_xact_lock({_LATCH})"))
        return held
