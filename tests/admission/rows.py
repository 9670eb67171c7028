"""Runs as earlier wakes would have left them, without the history that would produce them."""

from __future__ import annotations

import json

from office_tasks.ids import new_id
from tests.support import T0, Board


def store_run(
    board: Board,
    at=T0,
    *,
    agent="ana",
    reason="task_assigned",
    payload=None,
    key=None,
    run_id=None,
    retry_at=None,
    status="queued",
):
    """Write one run and return its id."""
    run_id = run_id or new_id()
    board.execute(
        "INSERT INTO runs (id, agent_profile_id, reason, payload, idempotency_key, requested_at, scheduled_retry_at) "
        "VALUES (:id, :agent, :reason, CAST(:payload AS jsonb), :key, :at, :retry_at)",
        id=run_id,
        agent=agent,
        reason=reason,
        payload=json.dumps({} if payload is None else payload),
        key=key,
        at=at,
        retry_at=retry_at,
    )
    if status != "queued":
        board.set_status(run_id, status)
    return run_id


def store_agent_assignments(board: Board, *instants, task="T1"):
    """Write one agent-initiated assignment of `task` at each instant, none of which a wake can merge into."""
    payload = {"task_id": task, "actor_type": "agent", "actor_id": "bob"}
    return [store_run(board, at, payload=payload, agent="bob", status="finished") for at in instants]
