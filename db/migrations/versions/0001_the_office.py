"""The office, as a whole: one schema for admission, recovery and termination."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from db import clock

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(clock.CREATE)
    op.create_table(
        "agents",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workspace_id", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), server_default=sa.text("'worker'"), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'active'"), nullable=False),
        sa.Column("permissions", postgresql.ARRAY(sa.Text()), nullable=True),
        sa.Column("max_concurrent_sessions", sa.SmallInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("office_now()"), nullable=False),
        sa.CheckConstraint(
            "status IN ('active', 'paused', 'stopped', 'pending_approval')", name=op.f("ck_agents_status")
        ),
        sa.CheckConstraint("octet_length(id) BETWEEN 1 AND 255", name=op.f("ck_agents_id_bounded")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agents")),
    )
    op.create_index("ix_agents_workspace_id", "agents", ["workspace_id"], unique=False)
    op.create_table(
        "deliveries",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("task_name", sa.Text(), nullable=False),
        sa.Column("deliveries", sa.Integer(), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), server_default=sa.text("office_now()"), nullable=False),
        sa.Column("poisoned_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("deliveries >= 2", name=op.f("ck_deliveries_redelivered")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
    )
    op.create_table(
        "mutations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=True),
        sa.Column("previous_runner_id", sa.Text(), nullable=True),
        sa.Column("generation", sa.BigInteger(), nullable=True),
        sa.Column("actor_type", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Text(), nullable=True),
        sa.Column("facts", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("result", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("committed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("(settled_at IS NULL) = (result IS NULL)", name=op.f("ck_mutations_settled_has_result")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_mutations")),
    )
    op.create_index(
        "ix_mutations_settled_at",
        "mutations",
        ["settled_at"],
        unique=False,
        postgresql_where=sa.text("settled_at IS NOT NULL"),
    )
    op.create_index(
        "ix_mutations_unsettled",
        "mutations",
        ["committed_at"],
        unique=False,
        postgresql_where=sa.text("settled_at IS NULL"),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("agent_profile_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'idle'"), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("office_now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("office_now()"), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("(state IN ('idle', 'running')) = (ended_at IS NULL)", name=op.f("ck_sessions_ended")),
        sa.CheckConstraint(
            "state IN ('idle', 'running', 'completed', 'failed', 'cancelled')", name=op.f("ck_sessions_state")
        ),
        sa.CheckConstraint(
            "state NOT IN ('idle', 'running') OR reason IS NULL", name=op.f("ck_sessions_only_ended_have_reasons")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
    )
    op.create_index("ix_sessions_agent_profile_id", "sessions", ["agent_profile_id"], unique=False)
    op.create_index(
        "uq_sessions_live",
        "sessions",
        ["task_id", "agent_profile_id"],
        unique=True,
        postgresql_where=sa.text("state IN ('idle', 'running')"),
    )
    op.create_table(
        "wakes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("mutation_id", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("agent_profile_id", sa.Text(), nullable=False),
        sa.Column(
            "task_id",
            sa.Text(),
            sa.Computed(
                "CASE WHEN jsonb_typeof(payload -> 'task_id') = 'string' THEN nullif(payload ->> 'task_id', '') END",
                persisted=True,
            ),
            nullable=True,
        ),
        sa.Column("payload", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("generation", sa.BigInteger(), nullable=True),
        sa.Column("keyless_cause", sa.Text(), nullable=True),
        sa.Column("keyless_detail", sa.Text(), nullable=True),
        sa.Column("actor_type", sa.Text(), nullable=True),
        sa.Column("actor_id", sa.Text(), nullable=True),
        sa.Column("producer", sa.Text(), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("gate", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.Column("observed", sa.Integer(), nullable=True),
        sa.Column("refusal", sa.Text(), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "CASE outcome WHEN 'queued' THEN run_id IS NOT NULL WHEN 'coalesced' THEN run_id IS NOT NULL WHEN 'rate_limited' THEN observed IS NOT NULL WHEN 'none' THEN refusal IS NOT NULL ELSE coalesce(outcome = 'deduped', true) END",
            name=op.f("ck_wakes_outcome"),
        ),
        sa.CheckConstraint(
            "CASE state WHEN 'owed' THEN outcome IS NULL AND decided_at IS NULL AND mutation_id IS NOT NULL WHEN 'decided' THEN outcome IS NOT NULL AND decided_at IS NOT NULL WHEN 'superseded' THEN outcome IS NULL AND decided_at IS NOT NULL ELSE false END",
            name=op.f("ck_wakes_state"),
        ),
        sa.CheckConstraint("(key IS NULL) = (keyless_cause IS NOT NULL)", name=op.f("ck_wakes_keyless_has_a_cause")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_wakes")),
    )
    op.create_index(
        "ix_wakes_decided_at", "wakes", ["decided_at"], unique=False, postgresql_where=sa.text("state <> 'owed'")
    )
    op.create_index(
        "ix_wakes_mutation_id",
        "wakes",
        ["mutation_id"],
        unique=False,
        postgresql_where=sa.text("mutation_id IS NOT NULL"),
    )
    op.create_index(
        "ix_wakes_owed", "wakes", ["requested_at", "id"], unique=False, postgresql_where=sa.text("state = 'owed'")
    )
    op.create_index(
        "ix_wakes_task_id",
        "wakes",
        ["task_id", "requested_at"],
        unique=False,
        postgresql_where=sa.text("task_id IS NOT NULL"),
    )
    op.create_table(
        "workspaces",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("office_workflow_id", sa.Text(), nullable=True),
        sa.Column("is_replay", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("recovery_lookback_hours", sa.SmallInteger(), server_default=sa.text("24"), nullable=False),
        sa.Column("recovery_served_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("office_now()"), nullable=False),
        sa.CheckConstraint("octet_length(id) BETWEEN 1 AND 255", name=op.f("ck_workspaces_id_bounded")),
        sa.CheckConstraint(
            "recovery_lookback_hours BETWEEN 1 AND 720", name=op.f("ck_workspaces_recovery_lookback_hours")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspaces")),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("mutation_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("changed", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["mutation_id"], ["mutations.id"], name=op.f("fk_events_mutation_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
    )
    op.create_index(
        "ix_events_sent_at", "events", ["sent_at"], unique=False, postgresql_where=sa.text("sent_at IS NOT NULL")
    )
    op.create_index("ix_events_unsent", "events", ["id"], unique=False, postgresql_where=sa.text("sent_at IS NULL"))
    op.create_table(
        "pauses",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("workspace_id", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("paused_at", sa.DateTime(timezone=True), server_default=sa.text("office_now()"), nullable=False),
        sa.Column("resumed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("resumed_at >= paused_at", name=op.f("ck_pauses_resumed_after_paused")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_pauses_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pauses")),
    )
    op.create_index(
        "uq_pauses_open", "pauses", ["workspace_id"], unique=True, postgresql_where=sa.text("resumed_at IS NULL")
    )
    op.create_table(
        "projects",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workspace_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("office_now()"), nullable=False),
        sa.CheckConstraint("octet_length(id) BETWEEN 1 AND 255", name=op.f("ck_projects_id_bounded")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_projects_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
    )
    op.create_index("ix_projects_workspace_id", "projects", ["workspace_id"], unique=False)
    op.create_table(
        "runs",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("agent_profile_id", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("payload", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "task_id",
            sa.Text(),
            sa.Computed(
                "CASE WHEN jsonb_typeof(payload -> 'task_id') = 'string' THEN nullif(payload ->> 'task_id', '') END",
                persisted=True,
            ),
            nullable=True,
        ),
        sa.Column(
            "task_scope",
            sa.Text(),
            sa.Computed(
                "CASE coalesce(jsonb_typeof(payload -> 'task_id'), 'null') WHEN 'null' THEN '' WHEN 'string' THEN payload ->> 'task_id' END",
                persisted=True,
            ),
            nullable=True,
        ),
        sa.Column(
            "actor_type",
            sa.Text(),
            sa.Computed(
                "CASE WHEN jsonb_typeof(payload -> 'actor_type') = 'string' THEN payload ->> 'actor_type' END",
                persisted=True,
            ),
            nullable=True,
        ),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), server_default=sa.text("'queued'"), nullable=False),
        sa.Column("coalesced_count", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempt", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("scheduled_retry_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_token", sa.Uuid(), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("session_id", sa.Uuid(), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancel_reason", sa.Text(), nullable=True),
        sa.Column("result", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "CASE WHEN status = 'queued' THEN lease_token IS NULL AND finished_at IS NULL WHEN status = 'claimed' THEN lease_token IS NOT NULL AND lease_expires_at IS NOT NULL AND scheduled_retry_at IS NULL AND finished_at IS NULL WHEN status IN ('finished', 'failed', 'cancelled') THEN finished_at IS NOT NULL AND lease_token IS NULL ELSE false END",
            name=op.f("ck_runs_status"),
        ),
        sa.CheckConstraint("coalesced_count >= 1 AND idempotency_key <> ''", name=op.f("ck_runs_counted_and_keyed")),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_runs_session_id"), ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_index(
        "ix_runs_assignments",
        "runs",
        ["task_id", "requested_at"],
        unique=False,
        postgresql_where=sa.text("task_id IS NOT NULL"),
    )
    op.create_index(
        "ix_runs_claimable", "runs", ["requested_at", "id"], unique=False, postgresql_where=sa.text("status = 'queued'")
    )
    op.create_index(
        "ix_runs_finished",
        "runs",
        ["agent_profile_id", "finished_at"],
        unique=False,
        postgresql_where=sa.text("status IN ('finished', 'failed', 'cancelled')"),
    )
    op.create_index(
        "ix_runs_leased",
        "runs",
        ["agent_profile_id", "lease_expires_at"],
        unique=False,
        postgresql_where=sa.text("status = 'claimed'"),
    )
    op.create_index(
        "ix_runs_mergeable",
        "runs",
        [
            "agent_profile_id",
            "reason",
            "task_scope",
            sa.literal_column("requested_at DESC"),
            sa.literal_column("id DESC"),
        ],
        unique=False,
        postgresql_where=sa.text("status = 'queued' AND scheduled_retry_at IS NULL"),
    )
    op.create_index(
        "uq_runs_idempotency_key",
        "runs",
        ["idempotency_key"],
        unique=True,
        postgresql_where=sa.text("idempotency_key IS NOT NULL"),
    )
    op.create_table(
        "steps",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workspace_id", sa.Text(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("primary_agent_id", sa.Text(), nullable=True),
        sa.Column("auto_start", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("office_now()"), nullable=False),
        sa.CheckConstraint("octet_length(id) BETWEEN 1 AND 255", name=op.f("ck_steps_id_bounded")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_steps_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_steps")),
    )
    op.create_index("ix_steps_workspace_id_workflow_id", "steps", ["workspace_id", "workflow_id"], unique=False)
    op.create_table(
        "tasks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workspace_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=True),
        sa.Column("workflow_id", sa.Text(), nullable=True),
        sa.Column("step_id", sa.Text(), nullable=True),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'todo'"), nullable=False),
        sa.Column("priority", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("assignment_generation", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("is_ephemeral", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_by_automation", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("recovery_attempts", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("recovery_next_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("archived_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("office_now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("office_now()"), nullable=False),
        sa.CheckConstraint(
            "status IN ('todo', 'in_progress', 'in_review', 'blocked', 'done', 'cancelled')",
            name=op.f("ck_tasks_status"),
        ),
        sa.CheckConstraint("assignment_generation >= 0", name=op.f("ck_tasks_assignment_generation")),
        sa.CheckConstraint("octet_length(id) BETWEEN 1 AND 255", name=op.f("ck_tasks_id_bounded")),
        sa.CheckConstraint("parent_id <> id", name=op.f("ck_tasks_not_its_own_parent")),
        sa.CheckConstraint("recovery_attempts >= 0", name=op.f("ck_tasks_recovery_attempts")),
        sa.ForeignKeyConstraint(["parent_id"], ["tasks.id"], name=op.f("fk_tasks_parent_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_tasks_project_id")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_tasks_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tasks")),
    )
    op.create_index(
        "ix_tasks_parent_id", "tasks", ["parent_id"], unique=False, postgresql_where=sa.text("parent_id IS NOT NULL")
    )
    op.create_index(
        "ix_tasks_unstarted",
        "tasks",
        ["workspace_id", "created_at"],
        unique=False,
        postgresql_where=sa.text(
            "status = 'todo' AND archived_at IS NULL AND NOT is_ephemeral AND NOT created_by_automation"
        ),
    )
    op.create_table(
        "blockers",
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("blocker_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("office_now()"), nullable=False),
        sa.CheckConstraint("task_id <> blocker_id", name=op.f("ck_blockers_not_itself")),
        sa.ForeignKeyConstraint(["blocker_id"], ["tasks.id"], name=op.f("fk_blockers_blocker_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_blockers_task_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("task_id", "blocker_id", name=op.f("pk_blockers")),
    )
    op.create_index("ix_blockers_blocker_id", "blockers", ["blocker_id"], unique=False)
    op.create_table(
        "comments",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("author_type", sa.Text(), nullable=False),
        sa.Column("author_id", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("office_now()"), nullable=False),
        sa.CheckConstraint("author_type IN ('user', 'agent')", name=op.f("ck_comments_author_type")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_comments_task_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_comments")),
    )
    op.create_index("ix_comments_task_id", "comments", ["task_id"], unique=False)
    op.create_table(
        "seats",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=True),
        sa.Column("step_id", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("agent_profile_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("office_now()"), nullable=False),
        sa.CheckConstraint("task_id IS NOT NULL OR step_id IS NOT NULL", name=op.f("ck_seats_somewhere")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_seats_task_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_seats")),
    )
    op.create_index("ix_seats_agent_profile_id", "seats", ["agent_profile_id"], unique=False)
    op.create_index("ix_seats_step_id", "seats", ["step_id"], unique=False, postgresql_where=sa.text("task_id IS NULL"))
    op.create_index(
        "uq_seats_place",
        "seats",
        ["task_id", "step_id", "role", "agent_profile_id"],
        unique=True,
        postgresql_nulls_not_distinct=True,
    )
    op.create_index(
        "uq_seats_runner",
        "seats",
        ["task_id", "step_id"],
        unique=True,
        postgresql_nulls_not_distinct=True,
        postgresql_where=sa.text("role = 'runner' AND task_id IS NOT NULL"),
    )
    op.create_table(
        "step_transitions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("from_step_id", sa.Text(), nullable=True),
        sa.Column("to_step_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("office_now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["task_id"], ["tasks.id"], name=op.f("fk_step_transitions_task_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_step_transitions")),
    )
    op.create_index("ix_step_transitions_task_id", "step_transitions", ["task_id"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_step_transitions_task_id", table_name="step_transitions")
    op.drop_table("step_transitions")
    op.drop_index(
        "uq_seats_runner",
        table_name="seats",
        postgresql_nulls_not_distinct=True,
        postgresql_where=sa.text("role = 'runner' AND task_id IS NOT NULL"),
    )
    op.drop_index("uq_seats_place", table_name="seats", postgresql_nulls_not_distinct=True)
    op.drop_index("ix_seats_step_id", table_name="seats", postgresql_where=sa.text("task_id IS NULL"))
    op.drop_index("ix_seats_agent_profile_id", table_name="seats")
    op.drop_table("seats")
    op.drop_index("ix_comments_task_id", table_name="comments")
    op.drop_table("comments")
    op.drop_index("ix_blockers_blocker_id", table_name="blockers")
    op.drop_table("blockers")
    op.drop_index(
        "ix_tasks_unstarted",
        table_name="tasks",
        postgresql_where=sa.text(
            "status = 'todo' AND archived_at IS NULL AND NOT is_ephemeral AND NOT created_by_automation"
        ),
    )
    op.drop_index("ix_tasks_parent_id", table_name="tasks", postgresql_where=sa.text("parent_id IS NOT NULL"))
    op.drop_table("tasks")
    op.drop_index("ix_steps_workspace_id_workflow_id", table_name="steps")
    op.drop_table("steps")
    op.drop_index("uq_runs_idempotency_key", table_name="runs", postgresql_where=sa.text("idempotency_key IS NOT NULL"))
    op.drop_index(
        "ix_runs_mergeable",
        table_name="runs",
        postgresql_where=sa.text("status = 'queued' AND scheduled_retry_at IS NULL"),
    )
    op.drop_index("ix_runs_leased", table_name="runs", postgresql_where=sa.text("status = 'claimed'"))
    op.drop_index(
        "ix_runs_finished", table_name="runs", postgresql_where=sa.text("status IN ('finished', 'failed', 'cancelled')")
    )
    op.drop_index("ix_runs_claimable", table_name="runs", postgresql_where=sa.text("status = 'queued'"))
    op.drop_index("ix_runs_assignments", table_name="runs", postgresql_where=sa.text("task_id IS NOT NULL"))
    op.drop_table("runs")
    op.drop_index("ix_projects_workspace_id", table_name="projects")
    op.drop_table("projects")
    op.drop_index("uq_pauses_open", table_name="pauses", postgresql_where=sa.text("resumed_at IS NULL"))
    op.drop_table("pauses")
    op.drop_index("ix_events_unsent", table_name="events", postgresql_where=sa.text("sent_at IS NULL"))
    op.drop_index("ix_events_sent_at", table_name="events", postgresql_where=sa.text("sent_at IS NOT NULL"))
    op.drop_table("events")
    op.drop_table("workspaces")
    op.drop_index("ix_wakes_task_id", table_name="wakes", postgresql_where=sa.text("task_id IS NOT NULL"))
    op.drop_index("ix_wakes_owed", table_name="wakes", postgresql_where=sa.text("state = 'owed'"))
    op.drop_index("ix_wakes_mutation_id", table_name="wakes", postgresql_where=sa.text("mutation_id IS NOT NULL"))
    op.drop_index("ix_wakes_decided_at", table_name="wakes", postgresql_where=sa.text("state <> 'owed'"))
    op.drop_table("wakes")
    op.drop_index("uq_sessions_live", table_name="sessions", postgresql_where=sa.text("state IN ('idle', 'running')"))
    op.drop_index("ix_sessions_agent_profile_id", table_name="sessions")
    op.drop_table("sessions")
    op.drop_index("ix_mutations_unsettled", table_name="mutations", postgresql_where=sa.text("settled_at IS NULL"))
    op.drop_index("ix_mutations_settled_at", table_name="mutations", postgresql_where=sa.text("settled_at IS NOT NULL"))
    op.drop_table("mutations")
    op.drop_table("deliveries")
    op.drop_index("ix_agents_workspace_id", table_name="agents")
    op.drop_table("agents")
    op.execute(clock.DROP)
