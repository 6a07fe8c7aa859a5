"""Create the first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "blobs",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_blobs")),
    )
    op.create_table(
        "blob_chunks",
        sa.Column("blob_id", sa.String(length=40), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["blob_id"], ["blobs.id"], name=op.f("fk_blob_chunks_blob_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("blob_id", "position", name=op.f("pk_blob_chunks")),
    )
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("format", sa.String(length=16), nullable=False),
        sa.Column("num_rows", sa.Integer(), nullable=False),
        sa.Column("num_columns", sa.Integer(), nullable=False),
        sa.Column("summary", sa.JSON(), nullable=False),
        sa.Column("original_blob_id", sa.String(length=40), nullable=False),
        sa.Column("table_blob_id", sa.String(length=40), nullable=False),
        sa.Column("cells_blob_id", sa.String(length=40), nullable=True),
        sa.ForeignKeyConstraint(
            ["cells_blob_id"], ["blobs.id"], name=op.f("fk_datasets_cells_blob_id")
        ),
        sa.ForeignKeyConstraint(
            ["original_blob_id"], ["blobs.id"], name=op.f("fk_datasets_original_blob_id")
        ),
        sa.ForeignKeyConstraint(
            ["table_blob_id"], ["blobs.id"], name=op.f("fk_datasets_table_blob_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
    )
    with op.batch_alter_table("datasets", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_datasets_created_at_id"), ["created_at", "id"], unique=False
        )

    op.create_table(
        "ground_truths",
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("edges", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_ground_truths_dataset_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("dataset_id", name=op.f("pk_ground_truths")),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("dataset_id", sa.String(length=40), nullable=True),
        sa.Column("ground_truth", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("tag", sa.String(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("woken_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.Column("cancel_requested_at", sa.Double(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("lease_token", sa.String(length=40), nullable=True),
        sa.Column("lease_expires_at", sa.Double(), nullable=True),
        sa.Column("heartbeat_at", sa.Double(), nullable=True),
        sa.Column("progress", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("progress_at", sa.Double(), nullable=True),
        sa.Column("error", sa.JSON(none_as_null=True), nullable=True),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_jobs_dataset_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_jobs_created_at_id"), ["created_at", "id"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_jobs_dataset_id"), ["dataset_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_jobs_state_lease_expires_at"),
            ["state", "lease_expires_at"],
            unique=False,
        )
        batch_op.create_index(batch_op.f("ix_jobs_tag"), ["tag"], unique=False)

    op.create_table(
        "artefacts",
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("media_type", sa.String(length=100), nullable=False),
        sa.Column("blob_id", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(["blob_id"], ["blobs.id"], name=op.f("fk_artefacts_blob_id")),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_artefacts_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "name", name=op.f("pk_artefacts")),
    )
    with op.batch_alter_table("artefacts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_artefacts_blob_id"), ["blob_id"], unique=False)

    op.create_table(
        "edges",
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("precision", sa.Double(), nullable=False),
        sa.Column("partial_correlation", sa.Double(), nullable=False),
        sa.Column("selected", sa.Boolean(), nullable=False),
        sa.Column("n_pairwise", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_edges_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "rank", name=op.f("pk_edges")),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("body_sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_idempotency_keys_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_idempotency_keys")),
    )
    with op.batch_alter_table("idempotency_keys", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_idempotency_keys_job_id"), ["job_id"], unique=False)

    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_outbox_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("outbox", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_outbox_job_id"), ["job_id"], unique=False)

    op.create_table(
        "results",
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_results_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_results")),
    )


def downgrade() -> None:
    op.drop_table("results")
    with op.batch_alter_table("outbox", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_outbox_job_id"))

    op.drop_table("outbox")
    with op.batch_alter_table("idempotency_keys", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_idempotency_keys_job_id"))

    op.drop_table("idempotency_keys")
    op.drop_table("edges")
    with op.batch_alter_table("artefacts", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_artefacts_blob_id"))

    op.drop_table("artefacts")
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_jobs_tag"))
        batch_op.drop_index(batch_op.f("ix_jobs_state_lease_expires_at"))
        batch_op.drop_index(batch_op.f("ix_jobs_dataset_id"))
        batch_op.drop_index(batch_op.f("ix_jobs_created_at_id"))

    op.drop_table("jobs")
    op.drop_table("ground_truths")
    with op.batch_alter_table("datasets", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_datasets_created_at_id"))

    op.drop_table("datasets")
    op.drop_table("blob_chunks")
    op.drop_table("blobs")
