"""Let tenants share the service, each with API keys of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def tenant() -> sa.Column[str]:
    """Return the column; what there was belongs to whoever is asked for no key."""
    return sa.Column("tenant", sa.String(length=63), nullable=False, server_default="default")


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("prefix", sa.String(length=16), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.Column("last_used_at", sa.Double(), nullable=True),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        tenant(),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("prefix", name=op.f("uq_api_keys_prefix")),
    )
    op.create_index(op.f("ix_api_keys_tenant_created_at_id"), "api_keys", _LIST_ORDER)
    # Plain ALTERs, as in 0002: making these tables anew would delete what refers to their rows.
    op.add_column("jobs", sa.Column("api_key_id", sa.String(length=40), nullable=True))
    op.create_index(op.f("ix_jobs_api_key_id_state"), "jobs", ["api_key_id", "state"])
    for table in ("datasets", "jobs"):
        op.add_column(table, tenant())
        op.drop_index(op.f(f"ix_{table}_created_at_id"), table)
        op.create_index(op.f(f"ix_{table}_tenant_created_at_id"), table, _LIST_ORDER)
    # Nothing refers to these.
    _make_idempotency_keys_anew([tenant()], ["tenant", "key"], "'default', ")


def downgrade() -> None:
    """Go back; the rows of all tenants are then everybody's, and keys are gone."""
    connection = op.get_bind()
    # Two tenants may have used the same key; the job stays, and only its older name is lost.
    connection.execute(
        sa.text(
            "DELETE FROM idempotency_keys WHERE EXISTS (SELECT 1 FROM idempotency_keys AS other"
            " WHERE other.key = idempotency_keys.key AND (other.created_at, other.tenant) >"
            " (idempotency_keys.created_at, idempotency_keys.tenant))"
        )
    )
    _make_idempotency_keys_anew([], ["key"], "")
    for table in ("datasets", "jobs"):
        op.drop_index(op.f(f"ix_{table}_tenant_created_at_id"), table)
        op.create_index(op.f(f"ix_{table}_created_at_id"), table, ["created_at", "id"])
        op.drop_column(table, "tenant")
    op.drop_index(op.f("ix_jobs_api_key_id_state"), "jobs")
    op.drop_column("jobs", "api_key_id")
    op.drop_index(op.f("ix_api_keys_tenant_created_at_id"), "api_keys")
    op.drop_table("api_keys")


_LIST_ORDER = ["tenant", "created_at", "id"]


def _make_idempotency_keys_anew(
    more_columns: list[sa.Column[str]], primary_key: list[str], more_values: str
) -> None:
    """Give the table these columns and this primary key, which neither database alters alike."""
    names = "".join(f"{column.name}, " for column in more_columns)
    kept = "key, job_id, body_sha256, created_at"
    op.drop_index(op.f("ix_idempotency_keys_job_id"), "idempotency_keys")
    op.rename_table("idempotency_keys", "old_idempotency_keys")
    if op.get_bind().dialect.name == "postgresql":
        # A renamed table's constraints keep their names, which the new one is to have.
        op.execute("ALTER TABLE old_idempotency_keys DROP CONSTRAINT pk_idempotency_keys")
        op.execute("ALTER TABLE old_idempotency_keys DROP CONSTRAINT fk_idempotency_keys_job_id")
    op.create_table(
        "idempotency_keys",
        *more_columns,
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("body_sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_idempotency_keys_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint(*primary_key, name=op.f("pk_idempotency_keys")),
    )
    op.execute(
        f"INSERT INTO idempotency_keys ({names}{kept}) "
        f"SELECT {more_values}{kept} FROM old_idempotency_keys"
    )
    op.drop_table("old_idempotency_keys")
    op.create_index(op.f("ix_idempotency_keys_job_id"), "idempotency_keys", ["job_id"])
