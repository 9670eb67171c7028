"""Executing runs: each agent's line, what the recovery jobs did last, and what retention deletes by."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "recovery_jobs",
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("succeeded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("result", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("job", name=op.f("pk_recovery_jobs")),
    )
    op.create_index(
        "ix_runs_waiting",
        "runs",
        ["agent_profile_id", "requested_at", "id"],
        unique=False,
        postgresql_where=sa.text("status = 'queued'"),
    )
    op.create_index("ix_deliveries_last_at", "deliveries", ["last_at"], unique=False)
    op.drop_constraint("fk_events_mutation_id", "events", type_="foreignkey")


def downgrade() -> None:
    op.create_foreign_key("fk_events_mutation_id", "events", "mutations", ["mutation_id"], ["id"], ondelete="CASCADE")
    op.drop_index("ix_deliveries_last_at", table_name="deliveries")
    op.drop_index("ix_runs_waiting", table_name="runs", postgresql_where=sa.text("status = 'queued'"))
    op.drop_table("recovery_jobs")
