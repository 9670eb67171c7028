"""Tasks that were assigned and never started: who they are, whose turn it is, and that they were tried (REC-1)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, text

from db import clock
from db.lifecycle import OWED, RUN
from db.pauses import PAUSED
from db.runner import IS_OFFICE_TASK, RUNNER_OF_TASK
from db.states import RUN_LIVE, WAKEABLE, literals

# Any constant of our own; held until the transaction ends, so a sweep that dies frees it.
_ONE_SWEEP: Final = text("SELECT pg_try_advisory_xact_lock(hashtext('office.recovery'))")

_ADOPTED: Final = text("""
    SELECT EXISTS (SELECT FROM workspaces WHERE office_workflow_id IS NOT NULL AND NOT is_replay)
        OR EXISTS (SELECT FROM projects)""")

# What makes a task a candidate: conditions over rows `tasks` and `workspaces`, each named by what it refuses. A run
# that failed or was cancelled is no start, however it came about; one in any other state is, however old. Scalar
# subqueries are asked of one candidate at a time, by an index: as joins, a planner without statistics or with old ones
# may read all runs there are, or all owed wakes once for each candidate.
_UNSTARTED: Final[Mapping[str, str]] = {
    "replay": "NOT workspaces.is_replay",
    "not_todo": "tasks.status = 'todo'",
    "archived": "tasks.archived_at IS NULL",
    "ephemeral": "NOT tasks.is_ephemeral",
    "automation": "NOT tasks.created_by_automation",
    "no_office_task": IS_OFFICE_TASK,
    "too_old": """
        tasks.created_at > CAST(:now AS timestamptz) - make_interval(hours => workspaces.recovery_lookback_hours)""",
    "unassigned": """
        (tasks.assignment_generation = 0
         OR EXISTS (SELECT FROM seats WHERE seats.task_id = tasks.id AND seats.role = 'runner'))""",
    "started": f"""
        (SELECT true FROM runs WHERE runs.task_id = tasks.id
         AND runs.status IN ({literals((*RUN_LIVE, RUN["finish"].target))}) LIMIT 1) IS NULL""",
    "owed": f"""
        tasks.id NOT IN (SELECT wakes.task_id FROM wakes WHERE wakes.{OWED}
                         AND wakes.reason = 'task_assigned' AND wakes.task_id IS NOT NULL)""",
}
_IS_UNSTARTED: Final = " AND ".join(_UNSTARTED.values())
_NO_CANDIDATE: Final = " ".join(f"WHEN ({holds}) IS NOT TRUE THEN '{name}'" for name, holds in _UNSTARTED.items())


def _gap(recoveries: str) -> str:
    return f"least(interval '1 min' * power(2, least({recoveries} - 1, 10)), interval '60 min')"


# The gap counts from the end of the last run as well: a run is tried five times over hours before it fails, and a gap
# that had begun with it would long be over.
_IS_BACKING_OFF: Final = f"""
    (coalesce(tasks.recovery_next_at > CAST(:now AS timestamptz), false)
     OR tasks.recovery_attempts > 0
        AND (SELECT true FROM runs WHERE runs.task_id = tasks.id AND runs.finished_at >
                 CAST(:now AS timestamptz) - {_gap("tasks.recovery_attempts")} LIMIT 1) IS NOT NULL)"""

# Why a candidate is passed over, which costs it no turn.
_SKIPPED: Final = f"""
    CASE WHEN agents.id IS NULL THEN 'agent_not_found'
         WHEN agents.status <> '{WAKEABLE}' THEN 'agent_not_wakeable'
         WHEN {PAUSED} THEN 'workspace_paused'
         WHEN steps.id IS NOT NULL AND NOT steps.auto_start THEN 'step_does_not_auto_start'
         WHEN (SELECT true FROM blockers JOIN tasks blocker ON blocker.id = blockers.blocker_id
               WHERE blockers.task_id = tasks.id AND blocker.status <> 'done' LIMIT 1) THEN 'blocked'
         WHEN {_IS_BACKING_OFF} THEN 'backing_off' END"""

# A candidate is in line since it was made, or since its gap was over; `woken_at` is when it was last taken. One that
# was taken since the first in line began to wait has had its turn, and comes after all who have not: candidates that
# keep failing, in however many workspaces, hold back nobody. Of the others workspaces take turns: the first in line of
# each before the second of any, and among them the workspace that was served longest ago. `OFFSET 0` has each workspace
# read its own recent tasks and no others, whatever the planner believes.
_LOOK: Final = text(f"""
    WITH candidate AS (
        SELECT tasks.*, workspaces.recovery_served_at, {RUNNER_OF_TASK} AS runner_id
        FROM workspaces CROSS JOIN LATERAL (
            SELECT * FROM tasks WHERE tasks.workspace_id = workspaces.id AND {_IS_UNSTARTED} OFFSET 0) tasks),
    looked AS (
        SELECT tasks.id AS task_id, tasks.workspace_id, tasks.recovery_served_at,
               coalesce(tasks.recovery_next_at, tasks.created_at) AS since,
               tasks.recovery_next_at - {_gap("tasks.recovery_attempts")} AS woken_at, {_SKIPPED} AS skipped
        FROM candidate tasks
        LEFT JOIN agents ON agents.id = tasks.runner_id LEFT JOIN steps ON steps.id = tasks.step_id
        WHERE tasks.runner_id IS NOT NULL),
    waiting AS (
        SELECT looked.*, coalesce(woken_at >= min(since) OVER (), false) AS had_its_turn
        FROM looked WHERE skipped IS NULL),
    inline AS (
        SELECT waiting.*, row_number() OVER (
            PARTITION BY workspace_id ORDER BY had_its_turn, since, task_id) AS place
        FROM waiting),
    taken AS (
        SELECT task_id, workspace_id, row_number() OVER (
            ORDER BY had_its_turn, place, recovery_served_at NULLS FIRST, workspace_id) AS turn
        FROM inline ORDER BY turn LIMIT :most)
    SELECT (SELECT count(*) FROM looked) AS candidates,
           (SELECT coalesce(jsonb_object_agg(skipped, n), '{{}}')
            FROM (SELECT skipped, count(*) AS n FROM looked WHERE skipped IS NOT NULL GROUP BY skipped) s) AS skipped,
           ARRAY(SELECT task_id FROM taken ORDER BY turn) AS task_ids,
           ARRAY(SELECT workspace_id FROM taken ORDER BY turn) AS workspace_ids""")

# The same conditions of one task, for whoever asks why it was not woken.
_EXAMINE: Final = text(f"""
    SELECT runner_id, agent_status, no_candidate, CASE WHEN no_candidate IS NULL THEN skipped END AS skipped, again_at
    FROM (SELECT tasks.runner_id, agents.status AS agent_status, {_SKIPPED} AS skipped,
                 CASE {_NO_CANDIDATE} WHEN tasks.runner_id IS NULL THEN 'no_runner' END AS no_candidate,
                 CASE WHEN tasks.recovery_attempts > 0 THEN greatest(
                     tasks.recovery_next_at, {_gap("tasks.recovery_attempts")}
                         + (SELECT max(runs.finished_at) FROM runs WHERE runs.task_id = tasks.id)) END AS again_at
          FROM (SELECT tasks.*, {RUNNER_OF_TASK} AS runner_id FROM tasks WHERE tasks.id = :task_id) tasks
          JOIN workspaces ON workspaces.id = tasks.workspace_id
          LEFT JOIN agents ON agents.id = tasks.runner_id LEFT JOIN steps ON steps.id = tasks.step_id) examined""")

# Checked again at the same instant, under the rows' locks: what was started, assigned or closed since is not taken.
_TAKE: Final = text(f"""
    WITH served AS (
        UPDATE workspaces SET recovery_served_at = CAST(:now AS timestamptz) WHERE id = ANY(:workspace_ids))
    UPDATE tasks SET recovery_attempts = recovery_attempts + 1,
           recovery_next_at = CAST(:now AS timestamptz) + {_gap("recovery_attempts + 1")}
    FROM workspaces
    WHERE tasks.id = ANY(:task_ids) AND workspaces.id = tasks.workspace_id
      AND ({_IS_UNSTARTED} AND NOT {_IS_BACKING_OFF}) IS TRUE
    RETURNING tasks.id, {RUNNER_OF_TASK} AS runner_id""")


class Unstarted(NamedTuple):
    """A task whose turn it is, and whom to wake."""

    task_id: str
    runner_id: str


class Look(NamedTuple):
    """What one look found: how many candidates, how many passed over and why, and whose turn it is."""

    candidates: int
    skipped: Mapping[str, int]
    turns: Sequence[Unstarted]


class Verdict(NamedTuple):
    """What the sweep makes of one task.

    `no_candidate` is why it is none, a name of `_UNSTARTED` or `no_runner`; `skipped` is why a candidate is passed
    over. With neither, it is in line. `again_at` is when its gap is over, if it was woken before.
    """

    runner_id: str | None
    agent_status: str | None
    no_candidate: str | None
    skipped: str | None
    again_at: dt.datetime | None


def take_turn(connection: Connection) -> bool:
    """Become the sweep until the transaction ends; False when another one is."""
    return bool(connection.execute(_ONE_SWEEP).scalar_one())


def is_adopted(connection: Connection) -> bool:
    """Tell whether any workspace has adopted the office: an office workflow, or a project (REC-1.7)."""
    return bool(connection.execute(_ADOPTED).scalar_one())


def take(connection: Connection, most: int) -> Look:
    """Take at most `most` unstarted tasks: each is tried again only after a gap that grows (REC-1.3 to REC-1.5)."""
    now = clock.now(connection)
    row = connection.execute(_LOOK, {"most": most, "now": now}).one()
    params: dict[str, Any] = {"task_ids": row.task_ids, "workspace_ids": row.workspace_ids, "now": now}
    runners = {each.id: each.runner_id for each in connection.execute(_TAKE, params)} if row.task_ids else {}
    turns = [Unstarted(task_id, runners[task_id]) for task_id in row.task_ids if runners.get(task_id)]
    return Look(row.candidates, row.skipped, turns)


def examine(connection: Connection, task_id: str) -> Verdict | None:
    """Return what the sweep makes of a task at this moment, by its own conditions; None when there is no such task."""
    params = {"task_id": task_id, "now": clock.now(connection)}
    row = connection.execute(_EXAMINE, params).one_or_none()
    return None if row is None else Verdict(*row)
