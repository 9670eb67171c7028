"""Mutations, what they owe, what they say, and how often a message came back."""

from __future__ import annotations

import uuid

from sqlalchemy import CheckConstraint, Computed, Index, Integer, Text, Uuid, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base, CreatedAt, Identifier, Instant, Json
from db.models.runs import TASK_ID

WAKE_ID = "pk_wakes"
GUARDED = "jsonb_typeof(facts -> 'guard') = 'object'"


class Mutation(Base):
    """One committed change, under the id of the message that asked for it (PRO-6.1)."""

    __tablename__ = "mutations"
    __table_args__ = (
        CheckConstraint("(settled_at IS NULL) = (result IS NULL)", name="settled_has_result"),
        Index("ix_mutations_unsettled", "committed_at", postgresql_where=text("settled_at IS NULL")),
        Index("ix_mutations_settled_at", "settled_at", postgresql_where=text("settled_at IS NOT NULL")),
        # What an operator asks of a task's sessions: the changes that took a capacity away.
        Index("ix_mutations_guarded", "task_id", "committed_at", postgresql_where=text(GUARDED)),
    )

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    kind: Mapped[str]
    task_id: Mapped[str | None]
    previous_runner_id: Mapped[str | None]
    generation: Mapped[int | None]
    actor_type: Mapped[str]
    actor_id: Mapped[str | None]
    facts: Mapped[Json]
    result: Mapped[Json | None]
    committed_at: Mapped[Instant]
    settled_at: Mapped[Instant | None]
    attempts: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    next_attempt_at: Mapped[Instant | None]


class Wake(Base):
    """One requested wake: what was asked, by whom, and what was decided (ADM-10.1).

    No foreign key to agents or runs: a wake outlives them.
    """

    __tablename__ = "wakes"
    __table_args__ = (
        # One table of what each state and outcome implies: the whole of a wake's life, and cheap to check on insert.
        CheckConstraint(
            "CASE state "
            "WHEN 'owed' THEN outcome IS NULL AND decided_at IS NULL AND mutation_id IS NOT NULL "
            "WHEN 'decided' THEN outcome IS NOT NULL AND decided_at IS NOT NULL "
            "WHEN 'superseded' THEN outcome IS NULL AND decided_at IS NOT NULL "
            "ELSE false END",
            name="state",
        ),
        CheckConstraint(
            "CASE outcome "
            "WHEN 'queued' THEN run_id IS NOT NULL WHEN 'coalesced' THEN run_id IS NOT NULL "
            "WHEN 'rate_limited' THEN observed IS NOT NULL WHEN 'none' THEN refusal IS NOT NULL "
            "ELSE coalesce(outcome = 'deduped', true) END",
            name="outcome",
        ),
        CheckConstraint("(key IS NULL) = (keyless_cause IS NOT NULL)", name="keyless_has_a_cause"),
        Index("ix_wakes_owed", "requested_at", "id", postgresql_where=text("state = 'owed'")),
        Index("ix_wakes_mutation_id", "mutation_id", postgresql_where=text("mutation_id IS NOT NULL")),
        Index("ix_wakes_task_id", "task_id", "requested_at", postgresql_where=text("task_id IS NOT NULL")),
        # What an operator asks of a run: the wakes that became it, were merged into it, or were its duplicates. Run ids
        # grow with time, so that the index is written where it was written last.
        Index("ix_wakes_decided_at", "decided_at", postgresql_where=text("state <> 'owed'")),
    )

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    mutation_id: Mapped[str | None]
    reason: Mapped[str]
    agent_profile_id: Mapped[Identifier]
    task_id: Mapped[str | None] = mapped_column(Text, Computed(TASK_ID, persisted=True))
    payload: Mapped[Json]
    key: Mapped[str | None]
    generation: Mapped[int | None]
    keyless_cause: Mapped[str | None]
    keyless_detail: Mapped[str | None]
    actor_type: Mapped[str | None]
    actor_id: Mapped[str | None]
    producer: Mapped[str]
    requested_at: Mapped[Instant]
    state: Mapped[str]
    outcome: Mapped[str | None]
    gate: Mapped[str | None]
    run_id: Mapped[uuid.UUID | None] = mapped_column(Uuid)
    observed: Mapped[int | None] = mapped_column(Integer)
    refusal: Mapped[str | None]
    decided_at: Mapped[Instant | None]
    attempts: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    last_error: Mapped[str | None]
    next_attempt_at: Mapped[Instant | None]


class Event(Base):
    """Something that happened to a task, in the transaction that made it happen (PRO-7).

    No foreign key to its mutation: one statement writes both, and without an index on it every mutation that retention
    deletes would read all events.
    """

    __tablename__ = "events"
    __table_args__ = (
        Index("ix_events_unsent", "id", postgresql_where=text("sent_at IS NULL")),
        Index("ix_events_sent_at", "sent_at", postgresql_where=text("sent_at IS NOT NULL")),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    mutation_id: Mapped[Identifier]
    task_id: Mapped[Identifier]
    type: Mapped[str]
    changed: Mapped[list[str]] = mapped_column(ARRAY(Text))
    created_at: Mapped[Instant]
    sent_at: Mapped[Instant | None]


class Delivery(Base):
    """How often one broker message was delivered, written from its second delivery on (ADM-10.5)."""

    __tablename__ = "deliveries"
    __table_args__ = (
        CheckConstraint("deliveries >= 2", name="redelivered"),
        Index("ix_deliveries_last_at", "last_at"),
    )

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    task_name: Mapped[str]
    deliveries: Mapped[int] = mapped_column(Integer)
    last_at: Mapped[CreatedAt]
    poisoned_at: Mapped[Instant | None]
