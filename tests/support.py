"""What many tests need: a furnished office, an instant to start from, wakes asked for in one line, rows read back."""

from __future__ import annotations

import datetime as dt
import uuid

from sqlalchemy import Engine, text

from office_tasks import admin
from office_tasks.admission import Answer, admit, wake
from office_tasks.ids import new_id

# A Monday; any instant would do. Tests add to it; nothing waits.
T0 = dt.datetime(2026, 3, 2, 9, 0, tzinfo=dt.UTC)


def after(**delta) -> dt.datetime:
    """Return the instant that much after T0: `after(minutes=10)`."""
    return T0 + dt.timedelta(**delta)


class Board:
    """The test's office, and its rows."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def furnish(self) -> Board:
        admin.create_workspace(self.engine, "acme", workflow_id="flow")
        admin.create_step(self.engine, "acme", "start", workflow_id="flow", auto_start=True)
        admin.create_step(self.engine, "acme", "wait", workflow_id="flow", auto_start=False)
        for agent in ("ana", "bob"):
            admin.create_agent(self.engine, "acme", agent)
        return self

    def ask(
        self, at=T0, *, agent="ana", reason="task_assigned", payload=None, key=None, wake_id=None, **more
    ) -> Answer:
        """Admit a bare wake at the instant `at`."""
        return admit(self.engine, self.wake(agent, reason, payload, key, wake_id), instant=at, **more)

    def assigned(self, at=T0, *, task="T1", agent="ana", by="agent", key=None, **more) -> Answer:
        """Admit a `task_assigned` wake of `task`, caused `by` an agent or a user."""
        payload = {"task_id": task, "actor_type": by, "actor_id": "bob"}
        return self.ask(at, agent=agent, payload=payload, key=key, **more)

    @staticmethod
    def wake(agent="ana", reason="task_assigned", payload=None, key=None, wake_id=None):
        return wake(
            wake_id=wake_id or str(new_id()),
            agent_profile_id=agent,
            reason=reason,
            payload=payload,
            key=key,
            producer="test",
        )

    def rows(self, query: str, **params) -> list[dict]:
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(text(query), params).mappings()]

    def run(self, run_id: uuid.UUID) -> dict:
        return self.rows("SELECT * FROM runs WHERE id = :id", id=run_id)[0]

    def runs(self) -> list[dict]:
        return self.rows("SELECT * FROM runs ORDER BY requested_at, id")

    def wakes(self) -> list[dict]:
        return self.rows("SELECT * FROM wakes ORDER BY requested_at, id")

    def count(self, table: str) -> int:
        return self.rows(f"SELECT count(*) AS n FROM {table}")[0]["n"]

    def execute(self, statement: str, **params) -> None:
        with self.engine.begin() as connection:
            connection.execute(text(statement), params)

    def set_status(self, run_id: uuid.UUID, status: str) -> None:
        """Move a run as later stages would: claimed, or finished."""
        columns = {
            "claimed": "lease_token = gen_random_uuid(), lease_expires_at = now(), claimed_at = now(), "
            "scheduled_retry_at = NULL, finished_at = NULL",
            "finished": "lease_token = NULL, lease_expires_at = NULL, finished_at = now()",
            "failed": "lease_token = NULL, lease_expires_at = NULL, finished_at = now()",
        }[status]
        self.execute(f"UPDATE runs SET status = :status, {columns} WHERE id = :id", id=run_id, status=status)
