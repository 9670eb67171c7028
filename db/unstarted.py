"""Tasks that were assigned and never started: who they are, whose turn it is, and that they were tried (REC-1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, text

from db.runner import IS_OFFICE_TASK, RUNNER_OF_TASK
from db.states import WAKEABLE

# Any constant of our own; held until the transaction ends, so a sweep that dies frees it.
_ONE_SWEEP: Final = text("SELECT pg_try_advisory_xact_lock(hashtext('office.recovery'))")

_ADOPTED: Final = text("""
    SELECT EXISTS (SELECT FROM workspaces WHERE office_workflow_id IS NOT NULL AND NOT is_replay)
        OR EXISTS (SELECT FROM projects)""")

# A run that failed or was cancelled is no start, however it came about; one in any other state is, however old.
_CANDIDATES: Final = f"""
    candidate AS (
        SELECT tasks.id AS task_id, tasks.workspace_id, tasks.step_id, tasks.created_at, tasks.recovery_attempts,
               workspaces.recovery_served_at, {RUNNER_OF_TASK} AS runner_id
        FROM workspaces JOIN tasks ON tasks.workspace_id = workspaces.id
        WHERE NOT workspaces.is_replay AND tasks.status = 'todo' AND tasks.archived_at IS NULL
          AND NOT tasks.is_ephemeral AND NOT tasks.created_by_automation AND {IS_OFFICE_TASK}
          AND tasks.created_at > office_now() - make_interval(hours => workspaces.recovery_lookback_hours)
          AND (tasks.recovery_next_at IS NULL OR tasks.recovery_next_at <= office_now())
          AND (tasks.assignment_generation = 0
               OR EXISTS (SELECT FROM seats WHERE seats.task_id = tasks.id AND seats.role = 'runner'))
          AND NOT EXISTS (SELECT FROM wakes WHERE wakes.task_id = tasks.id AND wakes.state = 'owed'
                          AND wakes.reason = 'task_assigned')
          AND NOT EXISTS (SELECT FROM runs WHERE runs.task_id = tasks.id
                          AND runs.status IN ('queued', 'claimed', 'finished')))"""

# Why a candidate is passed over, which costs it no turn.
_SKIPPED: Final = f"""
    CASE WHEN agents.id IS NULL THEN 'agent_not_found'
         WHEN agents.status <> '{WAKEABLE}' THEN 'agent_not_wakeable'
         WHEN EXISTS (SELECT FROM pauses WHERE pauses.workspace_id = agents.workspace_id AND pauses.resumed_at IS NULL)
             THEN 'workspace_paused'
         WHEN steps.id IS NOT NULL AND NOT steps.auto_start THEN 'step_does_not_auto_start'
         WHEN EXISTS (SELECT FROM blockers JOIN tasks blocker ON blocker.id = blockers.blocker_id
                      WHERE blockers.task_id = candidate.task_id AND blocker.status <> 'done') THEN 'blocked' END"""

# Each workspace's candidates in line: first whoever was tried least, then the oldest. Workspaces take turns: the first
# in line of each before the second of any, and among them the one that was served longest ago.
_LOOK: Final = text(f"""
    WITH {_CANDIDATES},
    looked AS (
        SELECT candidate.*, {_SKIPPED} AS skipped FROM candidate
        LEFT JOIN agents ON agents.id = candidate.runner_id LEFT JOIN steps ON steps.id = candidate.step_id
        WHERE candidate.runner_id IS NOT NULL),
    inline AS (
        SELECT looked.*, row_number() OVER (
            PARTITION BY workspace_id ORDER BY recovery_attempts, created_at, task_id) AS place
        FROM looked WHERE skipped IS NULL),
    taken AS (
        SELECT task_id, workspace_id, runner_id,
               row_number() OVER (ORDER BY place, recovery_served_at NULLS FIRST, workspace_id) AS turn
        FROM inline ORDER BY turn LIMIT :most)
    SELECT (SELECT count(*) FROM looked) AS candidates,
           (SELECT coalesce(jsonb_object_agg(skipped, n), '{{}}')
            FROM (SELECT skipped, count(*) AS n FROM looked WHERE skipped IS NOT NULL GROUP BY skipped) s) AS skipped,
           ARRAY(SELECT task_id FROM taken ORDER BY turn) AS task_ids,
           ARRAY(SELECT runner_id FROM taken ORDER BY turn) AS runner_ids,
           ARRAY(SELECT workspace_id FROM taken ORDER BY turn) AS workspace_ids""")

# Checked again against the same condition: what another sweep took meanwhile is not taken twice.
_TAKE: Final = text("""
    WITH served AS (UPDATE workspaces SET recovery_served_at = office_now() WHERE id = ANY(:workspace_ids))
    UPDATE tasks SET recovery_attempts = recovery_attempts + 1,
           recovery_next_at = office_now() + least(interval '1 min' * power(2, least(recovery_attempts, 10)),
                                                   interval '60 min')
    WHERE id = ANY(:task_ids) AND (recovery_next_at IS NULL OR recovery_next_at <= office_now())
    RETURNING id""")


class Unstarted(NamedTuple):
    """A task whose turn it is, and whom to wake."""

    task_id: str
    runner_id: str


class Look(NamedTuple):
    """What one look found: how many candidates, how many passed over and why, and whose turn it is."""

    candidates: int
    skipped: Mapping[str, int]
    turns: Sequence[Unstarted]


def take_turn(connection: Connection) -> bool:
    """Become the sweep until the transaction ends; False when another one is."""
    return bool(connection.execute(_ONE_SWEEP).scalar_one())


def is_adopted(connection: Connection) -> bool:
    """Tell whether any workspace has adopted the office: an office workflow, or a project (REC-1.7)."""
    return bool(connection.execute(_ADOPTED).scalar_one())


def take(connection: Connection, most: int) -> Look:
    """Take at most `most` unstarted tasks: each is tried again only after a gap that grows (REC-1.3 to REC-1.5)."""
    row = connection.execute(_LOOK, {"most": most}).one()
    params: dict[str, Any] = {"task_ids": row.task_ids, "workspace_ids": row.workspace_ids}
    ours = set(connection.execute(_TAKE, params).scalars()) if row.task_ids else set()
    turns = [Unstarted(*turn) for turn in zip(row.task_ids, row.runner_ids, strict=True) if turn[0] in ours]
    return Look(row.candidates, row.skipped, turns)
