"""Split jobs into parts."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Plain ALTERs only: SQLite does everything else by making the table anew, and dropping the old
# one would, by ON DELETE CASCADE, delete every result.


def upgrade() -> None:
    op.add_column("jobs", sa.Column("parent_id", sa.String(length=40), nullable=True))
    op.add_column(
        "jobs", sa.Column("is_split", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.create_index(op.f("ix_jobs_parent_id"), "jobs", ["parent_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_jobs_parent_id"), "jobs")
    op.drop_column("jobs", "is_split")
    op.drop_column("jobs", "parent_id")
