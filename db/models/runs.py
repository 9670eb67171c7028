"""Runs and the sessions they execute in."""

from __future__ import annotations

import uuid

from sqlalchemy import CheckConstraint, Computed, ForeignKey, Index, Integer, SmallInteger, Text, Uuid, text
from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base, CreatedAt, Identifier, Instant, Json, one_of
from db.states import SESSION_LIVE, SESSION_TERMINAL, literals

# The string guard of ADM-8.1, in the schema so that indexes can use it: only a JSON string names a task or an actor.
TASK_ID = "CASE WHEN jsonb_typeof(payload -> 'task_id') = 'string' THEN nullif(payload ->> 'task_id', '') END"
TASK_SCOPE = (
    "CASE coalesce(jsonb_typeof(payload -> 'task_id'), 'null') "
    "WHEN 'null' THEN '' WHEN 'string' THEN payload ->> 'task_id' END"
)
ACTOR_TYPE = "CASE WHEN jsonb_typeof(payload -> 'actor_type') = 'string' THEN payload ->> 'actor_type' END"

RUN_KEY = "uq_runs_idempotency_key"
MERGEABLE = "status = 'queued' AND scheduled_retry_at IS NULL"
AGENT_ASSIGNMENT = "reason = 'task_assigned' AND actor_type = 'agent'"


class Run(Base):
    """What an admitted wake became, and what an agent process is started from."""

    __tablename__ = "runs"
    __table_args__ = (
        # One table of what each status implies, cheap to check on insert.
        CheckConstraint(
            "CASE WHEN status = 'queued' THEN lease_token IS NULL AND finished_at IS NULL "
            "WHEN status = 'claimed' THEN lease_token IS NOT NULL AND lease_expires_at IS NOT NULL "
            "AND scheduled_retry_at IS NULL AND finished_at IS NULL "
            "WHEN status IN ('finished', 'failed', 'cancelled') THEN finished_at IS NOT NULL AND lease_token IS NULL "
            "ELSE false END",
            name="status",
        ),
        CheckConstraint("coalesced_count >= 1 AND idempotency_key <> ''", name="counted_and_keyed"),
        # Gates 3 and 6.
        Index(RUN_KEY, "idempotency_key", unique=True, postgresql_where=text("idempotency_key IS NOT NULL")),
        # Gate 4: one agent's mergeable runs, newest first.
        Index(
            "ix_runs_mergeable",
            "agent_profile_id",
            "reason",
            "task_scope",
            text("requested_at DESC"),
            text("id DESC"),
            postgresql_where=text(MERGEABLE),
        ),
        # Gate 5, the sweep's "was it ever started?" and what an operator asks of a task. One index, not one for each:
        # without statistics two that begin with `task_id` cost the planner the same, and it may take the one that walks
        # every run a task ever had.
        Index("ix_runs_assignments", "task_id", "requested_at", postgresql_where=text("task_id IS NOT NULL")),
        # The claim's order: all runs in line, and each agent's.
        Index("ix_runs_claimable", "requested_at", "id", postgresql_where=text("status = 'queued'")),
        Index("ix_runs_waiting", "agent_profile_id", "requested_at", "id", postgresql_where=text("status = 'queued'")),
        Index("ix_runs_leased", "agent_profile_id", "lease_expires_at", postgresql_where=text("status = 'claimed'")),
        # Retention keeps the newest of each agent.
        Index(
            "ix_runs_finished",
            "agent_profile_id",
            "finished_at",
            postgresql_where=text("status IN ('finished', 'failed', 'cancelled')"),
        ),
    )

    id: Mapped[uuid.UUID] = mapped_column(Uuid, primary_key=True)
    agent_profile_id: Mapped[Identifier]
    reason: Mapped[str]
    payload: Mapped[Json]
    task_id: Mapped[str | None] = mapped_column(Text, Computed(TASK_ID, persisted=True))
    task_scope: Mapped[str | None] = mapped_column(Text, Computed(TASK_SCOPE, persisted=True))
    actor_type: Mapped[str | None] = mapped_column(Text, Computed(ACTOR_TYPE, persisted=True))
    idempotency_key: Mapped[str | None]
    status: Mapped[str] = mapped_column(server_default=text("'queued'"))
    coalesced_count: Mapped[int] = mapped_column(Integer, server_default=text("1"))
    requested_at: Mapped[Instant]
    attempt: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    scheduled_retry_at: Mapped[Instant | None]
    claimed_at: Mapped[Instant | None]
    lease_token: Mapped[uuid.UUID | None] = mapped_column(Uuid)
    lease_expires_at: Mapped[Instant | None]
    cancel_requested_at: Mapped[Instant | None]
    session_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("sessions.id", ondelete="SET NULL"))
    finished_at: Mapped[Instant | None]
    cancel_reason: Mapped[str | None]
    result: Mapped[Json | None]
    error: Mapped[str | None]


_LIVE = literals(SESSION_LIVE)


class Session(Base):
    """The durable conversation of one (task, agent) pair; at most one is live."""

    __tablename__ = "sessions"
    __table_args__ = (
        one_of("state", (*SESSION_LIVE, *SESSION_TERMINAL)),
        CheckConstraint(f"(state IN ({_LIVE})) = (ended_at IS NULL)", name="ended"),
        CheckConstraint(f"state NOT IN ({_LIVE}) OR reason IS NULL", name="only_ended_have_reasons"),
        Index(
            "uq_sessions_live",
            "task_id",
            "agent_profile_id",
            unique=True,
            postgresql_where=text(f"state IN ({_LIVE})"),
        ),
        Index("ix_sessions_agent_profile_id", "agent_profile_id"),
        Index("ix_sessions_ended", "task_id", "ended_at", postgresql_where=text("ended_at IS NOT NULL")),
    )

    id: Mapped[uuid.UUID] = mapped_column(Uuid, primary_key=True)
    task_id: Mapped[Identifier]
    agent_profile_id: Mapped[Identifier]
    state: Mapped[str] = mapped_column(server_default=text("'idle'"))
    reason: Mapped[str | None]
    created_at: Mapped[CreatedAt]
    updated_at: Mapped[CreatedAt]
    ended_at: Mapped[Instant | None]
