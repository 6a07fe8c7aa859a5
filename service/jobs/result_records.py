"""Tables of what a finished job leaves; written once, in the transaction that ends the job."""

from typing import Any

from sqlalchemy import JSON, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from service.db.clock import now
from service.db.database import Record


class ResultRecord(Record):
    """The result document of a job."""

    __tablename__ = "results"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    created_at: Mapped[float] = mapped_column(default=now())
    # Estimates, convergence, warnings, versions: `schemas.EstimationResult`.
    document: Mapped[dict[str, Any]] = mapped_column(JSON)
    # Of the document's canonical JSON, in hexadecimal: what its ETag says.
    sha256: Mapped[str] = mapped_column(String(64))


class EdgeRecord(Record):
    """A pair of variables of an estimated graph; every pair is kept, ranked."""

    __tablename__ = "edges"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    # From 1, by falling |scaled interaction|.
    rank: Mapped[int] = mapped_column(primary_key=True)
    source: Mapped[str]
    target: Mapped[str]
    precision: Mapped[float]
    # Where the result's document says that K is positive definite, the partial correlation.
    scaled_interaction: Mapped[float]
    selected: Mapped[bool]
    n_pairwise: Mapped[int]
    # Share of half-samples that have the edge; null where none were drawn.
    inclusion: Mapped[float | None]
    # Partial correlation without the penalty's bias, and how sure it is; null where not known.
    debiased: Mapped[float | None]
    standard_error: Mapped[float | None]
    lower: Mapped[float | None]
    upper: Mapped[float | None]
    p_value: Mapped[float | None]
    q_value: Mapped[float | None]
    # A word of `results.vocabulary.Verdict`.
    verdict: Mapped[str | None]


class ArtefactRecord(Record):
    """A derived file of a result, made by the worker: bytes that never change."""

    __tablename__ = "artefacts"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    # A path-like name such as `precision.csv`, `figures/network.svg`, `roc/abs_precision.json`.
    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    media_type: Mapped[str] = mapped_column(String(100))
    blob_id: Mapped[str] = mapped_column(ForeignKey("blobs.id"), index=True)
