"""Keep what a long fit has done, for the attempt that follows an interruption."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "checkpoints",
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("saved_at", sa.Double(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_checkpoints_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_checkpoints")),
    )


def downgrade() -> None:
    op.drop_table("checkpoints")
