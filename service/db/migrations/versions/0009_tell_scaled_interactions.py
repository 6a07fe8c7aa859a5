"""Tell scaled interactions, which every K has, from partial correlations."""

import hashlib
import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# What pairs are ranked by; where K is indefinite these never were correlations.
SCORES = {
    "abs_partial_correlation": "abs_scaled_interaction",
    "partial_correlation": "scaled_interaction",
}
RESULTS = sa.table(
    "results", sa.column("job_id"), sa.column("document", sa.JSON), sa.column("sha256")
)
ARTEFACTS = sa.table("artefacts", sa.column("name"), sa.column("blob_id"))
BLOBS = sa.table("blobs", sa.column("id"), sa.column("sha256"), sa.column("size"))
CHUNKS = sa.table(
    "blob_chunks",
    sa.column("blob_id"),
    sa.column("position"),
    sa.column("data", sa.LargeBinary),
)


def upgrade() -> None:
    op.execute("ALTER TABLE edges RENAME COLUMN partial_correlation TO scaled_interaction")
    _rename_scores(SCORES)


def downgrade() -> None:
    _rename_scores({new: old for old, new in SCORES.items()})
    op.execute("ALTER TABLE edges RENAME COLUMN scaled_interaction TO partial_correlation")


def _rename_scores(names: dict[str, str]) -> None:
    _change_documents(names)
    for old, new in names.items():
        _change_curves(old, new)


def _change_documents(names: dict[str, str]) -> None:
    connection = op.get_bind()
    for row in connection.execute(sa.select(RESULTS)).all():
        document = json.loads(row.document) if isinstance(row.document, str) else row.document
        if not document.get("scores"):
            continue
        scores: list[dict[str, Any]] = [
            {**score, "score": names.get(score["score"], score["score"])}
            for score in document["scores"]
        ]
        document = {**document, "scores": scores}
        # The hash is the document's ETag, of the same canonical form as `results.repository` has.
        canonical = json.dumps(document, sort_keys=True, allow_nan=False)
        sha256 = hashlib.sha256(canonical.encode()).hexdigest()
        statement = sa.update(RESULTS).where(RESULTS.c.job_id == row.job_id)
        connection.execute(statement.values(document=document, sha256=sha256))


def _change_curves(old: str, new: str) -> None:
    """Give the files of a score's ROC curves, which name it, its new name."""
    connection = op.get_bind()
    files = ARTEFACTS.c.name == f"roc/{old}.json"
    for blob_id in connection.scalars(sa.select(ARTEFACTS.c.blob_id).where(files)).all():
        chunks = sa.select(CHUNKS).where(CHUNKS.c.blob_id == blob_id).order_by(CHUNKS.c.position)
        pieces = [bytes(chunk.data) for chunk in connection.execute(chunks)]
        # The score is the file's first field.
        pieces[0] = pieces[0].replace(f'"score":"{old}"'.encode(), f'"score":"{new}"'.encode(), 1)
        first = sa.and_(CHUNKS.c.blob_id == blob_id, CHUNKS.c.position == 0)
        connection.execute(sa.update(CHUNKS).where(first).values(data=pieces[0]))
        content = b"".join(pieces)
        changed = sa.update(BLOBS).where(BLOBS.c.id == blob_id)
        sha256 = hashlib.sha256(content).hexdigest()
        connection.execute(changed.values(size=len(content), sha256=sha256))
    connection.execute(sa.update(ARTEFACTS).where(files).values(name=f"roc/{new}.json"))
