"""Deleting an agent: the unguarded cascade (SES-1.10)."""

from __future__ import annotations

import datetime as dt
from functools import partial

from sqlalchemy import Engine

from db import deleting, sessions
from office_tasks import validation
from office_tasks.errors import NotFound
from office_tasks.producers.after import Result
from office_tasks.producers.mutation import THE_USER, Change, Note, Transaction, commit
from office_tasks.prose import shown
from office_tasks.termination import AGENT_DELETED


def delete_agent(
    engine: Engine, mutation_id: str, agent_profile_id: object, instant: dt.datetime | None = None
) -> Result:
    """Delete an agent: whatever capacity it holds, every live session of its ends, on every task.

    Its queued runs are cancelled and its executions asked to stop. Its seats stay.

    Raises:
        NotFound: no such agent.
    """
    wanted = validation.identifier("agent_profile_id", agent_profile_id)
    return commit(engine, mutation_id, partial(_delete, agent_profile_id=wanted), instant)


def _delete(tx: Transaction, *, agent_profile_id: str) -> Change:
    deleted = deleting.delete_agent(tx.connection, agent_profile_id, AGENT_DELETED, tx.instant)
    if deleted is None:
        raise NotFound(f"there is no agent {shown(agent_profile_id)}")
    ended = sessions.complete_all(tx.connection, agent_profile_id, AGENT_DELETED, tx.instant)
    return Change(
        kind="delete_agent",
        actor=THE_USER,
        result={
            "agent_profile_id": agent_profile_id,
            "cancelled": deleted.cancelled,
            "interrupted": deleted.interrupted,
            "sessions": [one.session_id for one in ended],
        },
        notes=[
            *(Note("run_interrupted", {"run_id": run_id}) for run_id in deleted.interrupted),
            *(Note("session_terminated", {**one._asdict(), "reason": AGENT_DELETED}) for one in ended),
        ],
    )
