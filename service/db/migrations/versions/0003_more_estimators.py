"""Let specifications and results tell of more estimators."""

import hashlib
import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# What estimators of the first release had no choice about.
NEW_CHOICES = {
    "penalties": None,
    "selection": "held-out",
    "ebic_gamma": 0.5,
    "n_subsamples": 100,
    "inclusion_threshold": 0.75,
    "max_false_edges": 2.0,
    "positive_definite": "warn",
    "noise_scale": 1.0,
}
JOBS = sa.table("jobs", sa.column("id"), sa.column("kind"), sa.column("spec", sa.JSON))
RESULTS = sa.table(
    "results", sa.column("job_id"), sa.column("document", sa.JSON), sa.column("sha256")
)


def upgrade() -> None:
    op.add_column("edges", sa.Column("inclusion", sa.Double(), nullable=True))
    _change_specs(lambda estimator: {**NEW_CHOICES, **estimator})
    _change_results(_newer)


def downgrade() -> None:
    _change_results(_older)
    _change_specs(
        lambda estimator: {key: v for key, v in estimator.items() if key not in NEW_CHOICES}
    )
    op.drop_column("edges", "inclusion")


def _change_specs(change: Any) -> None:
    connection = op.get_bind()
    rows = connection.execute(sa.select(JOBS).where(JOBS.c.kind == "estimation")).all()
    for row in rows:
        spec = _document(row.spec)
        if spec.get("estimator", {}).get("kind") in ("vnce", "nce"):
            spec["estimator"] = change(spec["estimator"])
            connection.execute(sa.update(JOBS).where(JOBS.c.id == row.id).values(spec=spec))


def _change_results(change: Any) -> None:
    connection = op.get_bind()
    for row in connection.execute(sa.select(RESULTS)).all():
        document = change(_document(row.document))
        # The hash is the document's ETag, of the same canonical form as `results.repository` has.
        canonical = json.dumps(document, sort_keys=True, allow_nan=False)
        sha256 = hashlib.sha256(canonical.encode()).hexdigest()
        statement = sa.update(RESULTS).where(RESULTS.c.job_id == row.job_id)
        connection.execute(statement.values(document=document, sha256=sha256))


def _document(value: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(value) if isinstance(value, str) else value
    return document


def _newer(document: dict[str, Any]) -> dict[str, Any]:
    penalty = document.get("penalty")
    if penalty is None or "selection" in penalty:
        return document
    path = [
        {
            "strength": step["strength"],
            "criterion": step["held_out_objective"],
            "standard_error": step["standard_error"],
            "n_edges": None,
            "chosen": step["chosen"],
        }
        for step in penalty["path"]
    ]
    selection = "held-out" if path else None
    return {
        **document,
        "penalty": {
            **penalty,
            "path": path,
            "selection": selection,
            "fitted_kind": None if penalty["strength"] is None else penalty["kind"],
        },
        "stability": None,
    }


def _older(document: dict[str, Any]) -> dict[str, Any]:
    penalty = document.get("penalty")
    if penalty is None:
        return document
    kept = {key: value for key, value in penalty.items() if key not in ("selection", "fitted_kind")}
    kept["path"] = [
        {
            "strength": step["strength"],
            "held_out_objective": step["criterion"],
            "standard_error": step["standard_error"],
            "chosen": step["chosen"],
        }
        for step in penalty["path"]
    ]
    others = {key: value for key, value in document.items() if key != "stability"}
    return {**others, "penalty": kept}
