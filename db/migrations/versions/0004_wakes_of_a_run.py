"""The wakes of a run: `office why` asks which became it, and in a large office would have to read them all."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

NAMED = sa.text("run_id IS NOT NULL")


def upgrade() -> None:
    op.create_index("ix_wakes_run_id", "wakes", ["run_id"], unique=False, postgresql_where=NAMED)


def downgrade() -> None:
    op.drop_index("ix_wakes_run_id", table_name="wakes", postgresql_where=NAMED)
