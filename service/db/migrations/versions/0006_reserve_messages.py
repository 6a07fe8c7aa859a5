"""Let each message be sent by one dispatcher."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("outbox", sa.Column("reserved_until", sa.Double(), nullable=True))


def downgrade() -> None:
    op.drop_column("outbox", "reserved_until")
