"""Let the unfinished jobs of a key be counted without reading their rows."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_OLD = ["api_key_id", "state"]
_NEW = ["tenant", "api_key_id", "state", "parent_id"]


def upgrade() -> None:
    op.create_index(op.f("ix_jobs_tenant_api_key_id_state_parent_id"), "jobs", _NEW)
    op.drop_index(op.f("ix_jobs_api_key_id_state"), "jobs")


def downgrade() -> None:
    op.create_index(op.f("ix_jobs_api_key_id_state"), "jobs", _OLD)
    op.drop_index(op.f("ix_jobs_tenant_api_key_id_state_parent_id"), "jobs")
