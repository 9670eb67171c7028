"""The writes of one assignment: the seat, the generation, and the retries of whoever is displaced, in one statement."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Final, NamedTuple

from sqlalchemy import Connection

from db.board import Standing
from db.clock import AT
from db.errors import DbError
from db.executions import CANCELLED
from db.lifecycle import QUEUED
from db.statement import Statement

_REASON: Final = "task_reassigned"

# The seat at the current step is the assignment (PRO-2.6); taking it again makes it the newest.
_TAKE_SEAT: Final = f"""
    INSERT INTO seats (id, task_id, step_id, role, agent_profile_id, created_at)
    VALUES (:seat_id, :task_id, :step_id, 'runner', :agent_profile_id, {AT})
    ON CONFLICT (task_id, step_id) WHERE role = 'runner' AND task_id IS NOT NULL
    DO UPDATE SET agent_profile_id = excluded.agent_profile_id, created_at = excluded.created_at, id = excluded.id"""

# At every step: else an older seat would come back as the runner (PRO-2.6).
_LEAVE_SEATS: Final = "DELETE FROM seats WHERE task_id = :task_id AND role = 'runner'"

_WITH_SEAT: Final = f"""
    WITH seat AS ({{seat}}),
    cancelled AS (
        UPDATE runs SET {CANCELLED}, cancel_reason = '{_REASON}'
        WHERE task_id = :task_id AND agent_profile_id = :previous
          AND {QUEUED} AND scheduled_retry_at IS NOT NULL
        RETURNING id),
    bumped AS (
        UPDATE tasks SET assignment_generation = assignment_generation + 1, updated_at = {AT},
               recovery_attempts = 0, recovery_next_at = NULL
        WHERE id = :task_id RETURNING assignment_generation)
    SELECT assignment_generation, ARRAY(SELECT CAST(id AS text) FROM cancelled ORDER BY id) FROM bumped"""

_ASSIGN: Final = Statement(_WITH_SEAT.format(seat=_TAKE_SEAT))
_UNASSIGN: Final = Statement(_WITH_SEAT.format(seat=_LEAVE_SEATS))


class Assigned(NamedTuple):
    """What an assignment committed: its generation, and the scheduled retries that it cancelled."""

    generation: int
    cancelled_retries: list[str]


def assign(
    connection: Connection,
    standing: Standing,
    agent_profile_id: str | None,
    *,
    seat_id: uuid.UUID,
    instant: dt.datetime | None,
) -> Assigned:
    """Write or delete the runner seat of a task that is locked, and bump its generation (PRO-2.1).

    Raises:
        DbError: the generation could not be read back, so the assignment must not commit.
    """
    params = {
        "seat_id": seat_id,
        "task_id": standing.task_id,
        "step_id": standing.step_id,
        "agent_profile_id": agent_profile_id,
        "previous": standing.runner_id,
        "instant": instant,
    }
    row = (_ASSIGN if agent_profile_id else _UNASSIGN).run(connection, params).one_or_none()
    if row is None:
        raise DbError("the assignment's generation could not be read back")
    return Assigned(*row)


_HAS_RUNNER_SEAT: Final = Statement("""
    SELECT EXISTS (SELECT FROM seats WHERE task_id = :task_id AND role = 'runner'
                   AND step_id IS NOT DISTINCT FROM CAST(:step_id AS text) AND agent_profile_id = :agent_profile_id)""")


def has_runner_seat(connection: Connection, standing: Standing, agent_profile_id: str) -> bool:
    """Tell whether the agent sits on the runner's seat where the task stands."""
    whose = {"task_id": standing.task_id, "step_id": standing.step_id, "agent_profile_id": agent_profile_id}
    return bool(_HAS_RUNNER_SEAT.run(connection, whose).scalar_one())
