"""Keep with each edge its estimate without bias, its interval, its tests and its verdict."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_NUMBERS = ("debiased", "standard_error", "lower", "upper", "p_value", "q_value")


def upgrade() -> None:
    for name in _NUMBERS:
        op.add_column("edges", sa.Column(name, sa.Double(), nullable=True))
    op.add_column("edges", sa.Column("verdict", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("edges", "verdict")
    for name in reversed(_NUMBERS):
        op.drop_column("edges", name)
