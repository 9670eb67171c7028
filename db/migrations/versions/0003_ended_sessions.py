"""Ended sessions: those of a task, and the changes of it that took a capacity away."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

GUARDED = sa.text("jsonb_typeof(facts -> 'guard') = 'object'")
ENDED = sa.text("ended_at IS NOT NULL")


def upgrade() -> None:
    op.create_index("ix_mutations_guarded", "mutations", ["task_id", "committed_at"], postgresql_where=GUARDED)
    op.create_index("ix_sessions_ended", "sessions", ["task_id", "ended_at"], postgresql_where=ENDED)


def downgrade() -> None:
    op.drop_index("ix_sessions_ended", table_name="sessions", postgresql_where=ENDED)
    op.drop_index("ix_mutations_guarded", table_name="mutations", postgresql_where=GUARDED)
