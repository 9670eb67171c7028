"""A board with conversations on it: who sits where, whose session lives, each act in one line."""

from __future__ import annotations

import uuid

from db.engine import autocommit
from db.models import Base
from office_tasks.ids import new_id
from office_tasks.producers import deletion, participants
from office_tasks.termination import Guard, end_unless_retained
from tests.admission.telling import counted
from tests.producers.acts import Acts, Did
from tests.support import T0

SUPPRESSED = "office_session_term_suppressed_total"


class Stage(Acts):
    """What can be done to seats and sessions, besides what every producer can."""

    def add(self, role, agent="ana", by="", task="T1", at=None) -> Did:
        return self._mutate(participants.add_participant, task, agent, role, by, at=at)

    def remove(self, role, agent="ana", by="", task="T1", at=None) -> Did:
        return self._mutate(participants.remove_participant, task, agent, role, by, at=at)

    def claim(self, role, displaced="ana", claiming="bob", by="", task="T1", at=None) -> Did:
        return self._mutate(participants.claim_seat, task, role, displaced, claiming, by, at=at)

    def delete(self, agent="ana", at=None) -> Did:
        return self._mutate(deletion.delete_agent, agent, at=at)

    def guard(self, agent="ana", task="T1", reason="participant_removed", engine=None, at=None) -> dict:
        """Take the guarded step by itself."""
        return end_unless_retained(engine or self.engine, Guard(task, agent, reason), at)

    def converse(self, task="T1", agent="ana", state="idle", at=T0) -> uuid.UUID:
        """Begin a conversation, as a run of that agent on that task would."""
        session_id = new_id()
        self.board.execute(
            "INSERT INTO sessions (id, task_id, agent_profile_id, state, created_at, updated_at, ended_at) "
            "VALUES (:id, :task, :agent, :state, :at, :at, CASE WHEN :state IN ('idle', 'running') THEN NULL "
            "ELSE CAST(:at AS timestamptz) END)",
            id=session_id, task=task, agent=agent, state=state, at=at,
        )  # fmt: skip
        return session_id

    def session(self, session_id) -> dict:
        """Return every column of a session's row."""
        return self.board.rows("SELECT *, xmin, ctid FROM sessions WHERE id = :id", id=session_id)[0]

    def is_live(self, task="T1", agent="ana") -> bool:
        return bool(self.board.rows(
            "SELECT 1 FROM sessions WHERE task_id = :task AND agent_profile_id = :agent AND ended_at IS NULL",
            task=task, agent=agent,
        ))  # fmt: skip

    def seats(self, agent="ana") -> list[tuple]:
        """Return the agent's seats as (task, step, role), ordered; a template's task is None."""
        rows = self.board.rows(
            "SELECT task_id, step_id, role FROM seats WHERE agent_profile_id = :agent ORDER BY 1, 2, 3", agent=agent
        )
        return [tuple(row.values()) for row in rows]

    def everything(self) -> dict[str, list[str]]:
        """Return every row of every table."""
        with autocommit(self.board.engine) as connection:
            return {
                table.name: sorted(map(str, connection.exec_driver_sql(f"SELECT * FROM {table.name}").all()))
                for table in Base.metadata.sorted_tables
            }


class Present(Stage):
    """A stage whose acts happen now, as executions do."""

    def _next(self):
        message, _ = super()._next()
        return message, None


def logged(told, *events):
    """Return the entries of these events (all about sessions unless named), as (level, event, fields)."""
    entries = [one for one in told.logged if one["event"] in events or (not events and "session" in one["event"])]
    return [
        (one["log_level"], one["event"], {k: v for k, v in one.items() if k not in {"log_level", "event"}})
        for one in entries
    ]


def kept_unread(told, error, reason="participant_removed", agent="ana", task="T1"):
    """Assert that the one thing told is a question that could not be answered."""
    assert told.moved[counted(SUPPRESSED, reason=reason, retained="read_failed")] == 1
    [(level, event, fields)] = logged(told)
    assert (level, event) == ("warning", "session_termination_read_failed")
    assert fields == {"task_id": task, "agent_profile_id": agent, "reason": reason, "error": fields["error"]}
    assert error in fields["error"]
