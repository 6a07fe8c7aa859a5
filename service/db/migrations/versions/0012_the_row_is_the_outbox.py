"""Keep in a job's own row whether its wake-up message is to be sent."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_INDEX = "ix_jobs_woken_at_id"
_TO_BE_SENT = sa.text("send_after IS NOT NULL")
# Messages of all other jobs had become useless.
_WAITS = "(state = 'queued' OR (state = 'running' AND is_split AND lease_token IS NULL))"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("send_after", sa.Double(), nullable=True))
    op.add_column("jobs", sa.Column("sent_at", sa.Double(), nullable=True))
    message = "(SELECT min(created_at) FROM outbox WHERE outbox.job_id = jobs.id)"
    op.execute(f"UPDATE jobs SET send_after = {message} WHERE {_WAITS}")
    op.execute(f"UPDATE jobs SET sent_at = woken_at WHERE {_WAITS} AND send_after IS NULL")
    op.create_index(
        op.f(_INDEX),
        "jobs",
        ["woken_at", "id"],
        postgresql_where=_TO_BE_SENT,
        sqlite_where=_TO_BE_SENT,
    )
    op.drop_index(op.f("ix_outbox_job_id"), "outbox")
    op.drop_table("outbox")


def downgrade() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("reserved_until", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_outbox_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_outbox_job_id"), "outbox", ["job_id"])
    op.execute(
        "INSERT INTO outbox (job_id, created_at) SELECT id, send_after FROM jobs"
        " WHERE send_after IS NOT NULL ORDER BY woken_at, id"
    )
    op.drop_index(op.f(_INDEX), "jobs")
    op.drop_column("jobs", "sent_at")
    op.drop_column("jobs", "send_after")
