"""The board: workspaces, agents, projects, steps, tasks and the seats on them."""

from __future__ import annotations

import uuid

from sqlalchemy import CheckConstraint, ForeignKey, Index, SmallInteger, Text, Uuid, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base, CreatedAt, Identifier, Instant, bounded_id, one_of
from db.states import AGENT_STATUSES, TASK_STATUSES


class Workspace(Base):
    """One office: its agents, its tasks, its settings."""

    __tablename__ = "workspaces"
    __table_args__ = (
        bounded_id(),
        CheckConstraint("recovery_lookback_hours BETWEEN 1 AND 720", name="recovery_lookback_hours"),
    )

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    name: Mapped[str]
    office_workflow_id: Mapped[str | None]
    # A replay's workspace: its runs are a back-test, so no claimer and no sweep touches it (OPS-1.5).
    is_replay: Mapped[bool] = mapped_column(server_default=text("false"))
    recovery_lookback_hours: Mapped[int] = mapped_column(SmallInteger, server_default=text("24"))
    recovery_served_at: Mapped[Instant | None]
    created_at: Mapped[CreatedAt]


class Pause(Base):
    """One pull of a workspace's kill switch; open until it is resumed."""

    __tablename__ = "pauses"
    __table_args__ = (
        Index("uq_pauses_open", "workspace_id", unique=True, postgresql_where=text("resumed_at IS NULL")),
        CheckConstraint("resumed_at >= paused_at", name="resumed_after_paused"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    workspace_id: Mapped[Identifier] = mapped_column(ForeignKey("workspaces.id", ondelete="CASCADE"))
    reason: Mapped[str] = mapped_column(server_default=text("''"))
    paused_at: Mapped[CreatedAt]
    resumed_at: Mapped[Instant | None]


class Agent(Base):
    """An agent profile: who can be woken.

    `workspace_id` has no foreign key: a missing workspace must be *unreadable* to gate 2 (ADM-2.6), so the schema
    has to let it be missing.
    """

    __tablename__ = "agents"
    __table_args__ = (
        bounded_id(),
        one_of("status", AGENT_STATUSES),
        Index("ix_agents_workspace_id", "workspace_id"),
    )

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    workspace_id: Mapped[str | None]
    name: Mapped[str]
    role: Mapped[str] = mapped_column(server_default=text("'worker'"))
    status: Mapped[str] = mapped_column(server_default=text("'active'"))
    permissions: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    max_concurrent_sessions: Mapped[int | None] = mapped_column(SmallInteger)
    created_at: Mapped[CreatedAt]


class Project(Base):
    """A project; its tasks are office tasks (PRO-3.4)."""

    __tablename__ = "projects"
    __table_args__ = (bounded_id(), Index("ix_projects_workspace_id", "workspace_id"))

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    workspace_id: Mapped[Identifier] = mapped_column(ForeignKey("workspaces.id", ondelete="CASCADE"))
    name: Mapped[str]
    created_at: Mapped[CreatedAt]


class Step(Base):
    """Where a task stands in its workflow."""

    __tablename__ = "steps"
    __table_args__ = (bounded_id(), Index("ix_steps_workspace_id_workflow_id", "workspace_id", "workflow_id"))

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    workspace_id: Mapped[Identifier] = mapped_column(ForeignKey("workspaces.id", ondelete="CASCADE"))
    workflow_id: Mapped[str]
    name: Mapped[str]
    primary_agent_id: Mapped[str | None]
    auto_start: Mapped[bool] = mapped_column(server_default=text("false"))
    created_at: Mapped[CreatedAt]


class Task(Base):
    """A row on the board.

    `step_id` has no foreign key: a step that cannot be read must leave its tasks eligible (PRO-3.3), so the schema
    has to let it be missing.
    """

    __tablename__ = "tasks"
    __table_args__ = (
        bounded_id(),
        one_of("status", TASK_STATUSES),
        CheckConstraint("assignment_generation >= 0", name="assignment_generation"),
        CheckConstraint("recovery_attempts >= 0", name="recovery_attempts"),
        CheckConstraint("parent_id <> id", name="not_its_own_parent"),
        Index("ix_tasks_parent_id", "parent_id", postgresql_where=text("parent_id IS NOT NULL")),
        Index(
            "ix_tasks_unstarted",
            "workspace_id",
            "created_at",
            postgresql_where=text(
                "status = 'todo' AND archived_at IS NULL AND NOT is_ephemeral AND NOT created_by_automation"
            ),
        ),
    )

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    workspace_id: Mapped[Identifier] = mapped_column(ForeignKey("workspaces.id", ondelete="CASCADE"))
    project_id: Mapped[str | None] = mapped_column(ForeignKey("projects.id"))
    workflow_id: Mapped[str | None]
    step_id: Mapped[str | None]
    parent_id: Mapped[str | None] = mapped_column(ForeignKey("tasks.id"))
    title: Mapped[str]
    status: Mapped[str] = mapped_column(server_default=text("'todo'"))
    priority: Mapped[str] = mapped_column(server_default=text("''"))
    assignment_generation: Mapped[int] = mapped_column(server_default=text("0"))
    is_ephemeral: Mapped[bool] = mapped_column(server_default=text("false"))
    created_by_automation: Mapped[bool] = mapped_column(server_default=text("false"))
    recovery_attempts: Mapped[int] = mapped_column(server_default=text("0"))
    recovery_next_at: Mapped[Instant | None]
    archived_at: Mapped[Instant | None]
    created_at: Mapped[CreatedAt]
    updated_at: Mapped[CreatedAt]


class Blocker(Base):
    """`task_id` waits until `blocker_id` is done."""

    __tablename__ = "blockers"
    __table_args__ = (
        CheckConstraint("task_id <> blocker_id", name="not_itself"),
        Index("ix_blockers_blocker_id", "blocker_id"),
    )

    task_id: Mapped[Identifier] = mapped_column(ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=True)
    blocker_id: Mapped[Identifier] = mapped_column(ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=True)
    created_at: Mapped[CreatedAt]


class Seat(Base):
    """A participant row. Without a task it is a template of its step; without a step it is a stepless task's own."""

    __tablename__ = "seats"
    __table_args__ = (
        CheckConstraint("task_id IS NOT NULL OR step_id IS NOT NULL", name="somewhere"),
        Index(
            "uq_seats_place",
            "task_id",
            "step_id",
            "role",
            "agent_profile_id",
            unique=True,
            postgresql_nulls_not_distinct=True,
        ),
        # One runner at a step of a task: the seat is the assignment (PRO-2.6).
        Index(
            "uq_seats_runner",
            "task_id",
            "step_id",
            unique=True,
            postgresql_nulls_not_distinct=True,
            postgresql_where=text("role = 'runner' AND task_id IS NOT NULL"),
        ),
        Index("ix_seats_step_id", "step_id", postgresql_where=text("task_id IS NULL")),
        Index("ix_seats_agent_profile_id", "agent_profile_id"),
    )

    id: Mapped[uuid.UUID] = mapped_column(Uuid, primary_key=True)
    task_id: Mapped[str | None] = mapped_column(ForeignKey("tasks.id", ondelete="CASCADE"))
    step_id: Mapped[str | None]
    role: Mapped[str]
    agent_profile_id: Mapped[Identifier]
    created_at: Mapped[CreatedAt]


class StepTransition(Base):
    """One move of a task to a step; its id is the generation of the auto-start key."""

    __tablename__ = "step_transitions"
    __table_args__ = (Index("ix_step_transitions_task_id", "task_id"),)

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    task_id: Mapped[Identifier] = mapped_column(ForeignKey("tasks.id", ondelete="CASCADE"))
    from_step_id: Mapped[str | None]
    to_step_id: Mapped[Identifier]
    created_at: Mapped[CreatedAt]


class Comment(Base):
    """A comment on a task; its id is the generation of the keys that it causes."""

    __tablename__ = "comments"
    __table_args__ = (
        one_of("author_type", ("user", "agent")),
        Index("ix_comments_task_id", "task_id"),
    )

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    task_id: Mapped[Identifier] = mapped_column(ForeignKey("tasks.id", ondelete="CASCADE"))
    author_type: Mapped[str]
    author_id: Mapped[str]
    body: Mapped[str]
    created_at: Mapped[CreatedAt]
