"""Keep K positive definite always, without a choice; let a path tell the kind of each step."""

import hashlib
import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

GONE = {"positive_definite": "warn"}
JOBS = sa.table("jobs", sa.column("id"), sa.column("kind"), sa.column("spec", sa.JSON))
RESULTS = sa.table(
    "results", sa.column("job_id"), sa.column("document", sa.JSON), sa.column("sha256")
)


def upgrade() -> None:
    _change_specs(lambda estimator: {k: v for k, v in estimator.items() if k not in GONE})
    # All steps were of the kind that was asked for.
    _change_penalties(
        lambda penalty: {
            **penalty,
            "path": [{"kind": penalty["kind"], **s} for s in penalty["path"]],
        }
    )


def downgrade() -> None:
    _change_penalties(
        lambda penalty: {
            **penalty,
            "kind": _older_kind(penalty["kind"]),
            "path": [{k: v for k, v in step.items() if k != "kind"} for step in penalty["path"]],
        }
    )
    _change_specs(
        lambda estimator: {
            **GONE,
            **estimator,
            "penalty_kind": _older_kind(estimator["penalty_kind"]),
        }
    )


def _older_kind(kind: str) -> str:
    return "adaptive" if kind == "auto" else kind


def _change_specs(change: Any) -> None:
    connection = op.get_bind()
    rows = connection.execute(sa.select(JOBS).where(JOBS.c.kind == "estimation")).all()
    for row in rows:
        spec = _document(row.spec)
        is_network = spec.get("model", {}).get("kind") not in (None, "mixture")
        if is_network and spec.get("estimator", {}).get("kind") in ("vnce", "nce"):
            spec["estimator"] = change(spec["estimator"])
            connection.execute(sa.update(JOBS).where(JOBS.c.id == row.id).values(spec=spec))


def _change_penalties(change: Any) -> None:
    connection = op.get_bind()
    for row in connection.execute(sa.select(RESULTS)).all():
        document = _document(row.document)
        penalty = document.get("penalty")
        if not penalty:
            continue
        document = {**document, "penalty": change(penalty)}
        # The hash is the document's ETag, of the same canonical form as `results.repository` has.
        canonical = json.dumps(document, sort_keys=True, allow_nan=False)
        sha256 = hashlib.sha256(canonical.encode()).hexdigest()
        statement = sa.update(RESULTS).where(RESULTS.c.job_id == row.job_id)
        connection.execute(statement.values(document=document, sha256=sha256))


def _document(value: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(value) if isinstance(value, str) else value
    return document
