"""What an operator lists: the rows of an office, for reading only."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, TextClause, text

from db.pauses import PAUSED
from db.runner import RUNNER_OF_TASK

Rows = Sequence[Mapping[str, Any]]

WAKES_SHOWN: Final = 20
# Those of one change share its instant and its id, and differ in their number: #10 is longer than #9.
NEWEST_WAKES_FIRST: Final = "ORDER BY wakes.requested_at DESC, length(wakes.id) DESC, wakes.id DESC LIMIT :most"

_WORKSPACES: Final = text("""
    SELECT id, name, office_workflow_id, is_replay, recovery_lookback_hours, created_at,
           EXISTS (SELECT FROM pauses WHERE workspace_id = workspaces.id AND resumed_at IS NULL) AS paused,
           (SELECT count(*) FROM agents WHERE agents.workspace_id = workspaces.id) AS agents,
           (SELECT count(*) FROM tasks WHERE tasks.workspace_id = workspaces.id) AS tasks
    FROM workspaces ORDER BY id""")

_AGENTS: Final = text("""
    SELECT id, workspace_id, name, role, status, permissions, max_concurrent_sessions, created_at
    FROM agents WHERE CAST(:workspace_id AS text) IS NULL OR workspace_id = :workspace_id ORDER BY workspace_id, id""")

# What an agent has before it, and whether its workspace holds it up.
_WORK_OF_AGENT: Final = text(f"""
    SELECT workspace_id,
           {PAUSED} AS workspace_paused,
           (SELECT count(*) FROM runs WHERE agent_profile_id = agents.id AND runs.status = 'queued') AS queued,
           (SELECT count(*) FROM runs WHERE agent_profile_id = agents.id AND runs.status = 'claimed') AS executing,
           (SELECT count(*) FROM wakes WHERE agent_profile_id = agents.id AND state = 'owed') AS owed
    FROM agents WHERE id = :agent_profile_id""")

# The same of all agents of a workspace.
_WORK_OF_WORKSPACE: Final = text("""
    SELECT pauses.paused_at, pauses.reason,
           (SELECT count(*) FROM agents JOIN runs ON runs.agent_profile_id = agents.id
            WHERE agents.workspace_id = workspaces.id AND runs.status = 'queued') AS queued,
           (SELECT count(*) FROM agents JOIN runs ON runs.agent_profile_id = agents.id
            WHERE agents.workspace_id = workspaces.id AND runs.status = 'claimed') AS executing,
           (SELECT count(*) FROM agents JOIN wakes ON wakes.agent_profile_id = agents.id
            WHERE agents.workspace_id = workspaces.id AND wakes.state = 'owed') AS owed
    FROM workspaces LEFT JOIN pauses ON pauses.workspace_id = workspaces.id AND pauses.resumed_at IS NULL
    WHERE workspaces.id = :workspace_id""")

_STEPS: Final = text("""
    SELECT id, workspace_id, workflow_id, name, auto_start, primary_agent_id
    FROM steps WHERE CAST(:workspace_id AS text) IS NULL OR workspace_id = :workspace_id
    ORDER BY workspace_id, workflow_id, id""")

_TASK: Final = f"""
    SELECT id, workspace_id, title, status, priority, project_id, workflow_id, step_id, parent_id,
           assignment_generation, {RUNNER_OF_TASK} AS runner_id, archived_at, created_at, updated_at
    FROM tasks"""

_TASKS: Final = text(f"""{_TASK}
    WHERE CAST(:workspace_id AS text) IS NULL OR workspace_id = :workspace_id
    ORDER BY created_at DESC, id DESC LIMIT :most""")

_ONE_TASK: Final = text(f"{_TASK} WHERE id = :task_id")

_RUN: Final = """
    SELECT id, agent_profile_id, reason, task_id, status, attempt, coalesced_count, requested_at, claimed_at,
           lease_expires_at, scheduled_retry_at, finished_at, cancel_requested_at, cancel_reason, session_id,
           idempotency_key, payload, result, error
    FROM runs"""

# Their ids are ordered by when they were admitted.
_RUNS: Final = text(f"""{_RUN}
    WHERE (CAST(:task_id AS text) IS NULL OR task_id = :task_id)
      AND (CAST(:agent_profile_id AS text) IS NULL OR agent_profile_id = :agent_profile_id)
      AND (CAST(:status AS text) IS NULL OR status = :status)
    ORDER BY id DESC LIMIT :most""")

_ONE_RUN: Final = text(f"{_RUN} WHERE id = :run_id")

_WAKES_OF_TASK: Final = text(f"""
    SELECT id, requested_at, agent_profile_id, reason, key, actor_type, actor_id, producer, state, outcome, gate,
           run_id, observed, refusal, decided_at
    FROM wakes WHERE task_id = :task_id {NEWEST_WAKES_FIRST}""")


def workspaces(connection: Connection) -> Rows:
    """Return all workspaces, with whether they are paused and how many agents and tasks they have."""
    return _rows(connection, _WORKSPACES)


def agents(connection: Connection, workspace_id: str | None) -> Rows:
    """Return the agents of a workspace, or of all."""
    return _rows(connection, _AGENTS, workspace_id=workspace_id)


def work_of_agent(connection: Connection, agent_profile_id: str) -> Mapping[str, Any]:
    """Return what a known agent has queued, executing and owed, and whether its workspace is paused."""
    return _rows(connection, _WORK_OF_AGENT, agent_profile_id=agent_profile_id)[0]


def work_of_workspace(connection: Connection, workspace_id: str) -> Mapping[str, Any]:
    """Return what a known workspace's agents have queued, executing and owed, and since when and why it is paused."""
    return _rows(connection, _WORK_OF_WORKSPACE, workspace_id=workspace_id)[0]


def steps(connection: Connection, workspace_id: str | None) -> Rows:
    """Return the steps of a workspace, or of all."""
    return _rows(connection, _STEPS, workspace_id=workspace_id)


def tasks(connection: Connection, workspace_id: str | None, most: int) -> Rows:
    """Return the newest tasks of a workspace, or of all, with their runners."""
    return _rows(connection, _TASKS, workspace_id=workspace_id, most=most)


def task(connection: Connection, task_id: str) -> Mapping[str, Any] | None:
    """Return one task with its runner, or None when there is none."""
    return next(iter(_rows(connection, _ONE_TASK, task_id=task_id)), None)


def runs(
    connection: Connection, *, task_id: str | None, agent_profile_id: str | None, status: str | None, most: int
) -> Rows:
    """Return the newest runs, of a task, an agent and a status where these are given."""
    return _rows(connection, _RUNS, task_id=task_id, agent_profile_id=agent_profile_id, status=status, most=most)


def run(connection: Connection, run_id: uuid.UUID) -> Mapping[str, Any] | None:
    """Return one run, or None when there is none."""
    return next(iter(_rows(connection, _ONE_RUN, run_id=run_id)), None)


def wakes_of_task(connection: Connection, task_id: str) -> Rows:
    """Return the last wakes of a task, the newest first."""
    return _rows(connection, _WAKES_OF_TASK, task_id=task_id, most=WAKES_SHOWN)


def _rows(connection: Connection, query: TextClause, **params: Any) -> Rows:  # noqa: ANN401 - what the query names
    return [dict(row) for row in connection.execute(query, params).mappings()]
