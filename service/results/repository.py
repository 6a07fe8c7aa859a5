"""SQL of results: written whole in the transaction that ends the job, read in parts."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, insert, inspect, select
from sqlalchemy.orm import Session

from service.datasets import repository as datasets
from service.db import blobs
from service.db.blobs import BlobRecord
from service.jobs.result_records import ArtefactRecord, EdgeRecord, ResultRecord
from service.results.outcome import Outcome
from service.results.vocabulary import Verdict


@dataclass(frozen=True)
class EdgeFilter:
    """Which pairs are listed."""

    # Least absolute scaled interaction.
    min_abs_weight: float
    # Only those that are selected, or are not; None: both.
    selected: bool | None
    # Only those of this verdict; None: all.
    verdict: Verdict | None = None


# What is stored of an edge; its partial correlation follows from the document.
_EDGE_COLUMNS = [
    column.key for column in inspect(EdgeRecord).columns if column.key not in ("job_id", "rank")
]


def store(session: Session, job_id: str, outcome: Outcome) -> None:
    """Add all that a job leaves to the session's transaction."""
    if (made := outcome.dataset) is not None:
        datasets.add(session, made.data)
        datasets.put_ground_truth(session, made.data.id, made.ground_truth)
    document = outcome.document.model_dump(mode="json")
    session.add(ResultRecord(job_id=job_id, document=document, sha256=hash_of(document)))
    session.flush()
    rows = [
        {"job_id": job_id, "rank": rank} | {name: getattr(edge, name) for name in _EDGE_COLUMNS}
        for rank, edge in enumerate(outcome.edges, start=1)
    ]
    if rows:
        session.execute(insert(EdgeRecord), rows)
    for artefact in outcome.artefacts:
        blob = blobs.store(session, artefact.content)
        session.add(
            ArtefactRecord(
                job_id=job_id,
                name=artefact.name,
                media_type=artefact.media_type,
                blob_id=blob.id,
            )
        )
    session.flush()


def hash_of(document: dict[str, Any]) -> str:
    """Return the SHA-256, in hexadecimal, of a document's canonical JSON."""
    canonical = json.dumps(document, sort_keys=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def files(session: Session, job_id: str) -> list[tuple[ArtefactRecord, BlobRecord]]:
    """Return the files of a result and their bytes' records, by name."""
    query = (
        select(ArtefactRecord, BlobRecord)
        .join(BlobRecord, BlobRecord.id == ArtefactRecord.blob_id)
        .where(ArtefactRecord.job_id == job_id)
        .order_by(ArtefactRecord.name)
    )
    return [(artefact, blob) for artefact, blob in session.execute(query)]


@dataclass(frozen=True)
class GraphHead:
    """What a result says of its network as a whole."""

    names: list[str]
    edge_rule: dict[str, Any]
    is_positive_definite: bool


def graph_head(session: Session, job_id: str) -> GraphHead:
    """Return what is said of an estimated network, the rest of the document left where it is."""
    document = ResultRecord.document
    query = select(
        document["names"],
        document["edge_rule"],
        document[("diagnostics", "is_positive_definite")].as_boolean(),
    ).where(ResultRecord.job_id == job_id)
    return GraphHead(*session.execute(query).one())


def strongest_edges(
    session: Session, job_id: str, wanted: EdgeFilter, limit: int, after_rank: int
) -> list[EdgeRecord]:
    """Return at most `limit` pairs in the order of their rank, those after `after_rank`."""
    query = select(EdgeRecord).where(
        EdgeRecord.job_id == job_id,
        EdgeRecord.rank > after_rank,
        func.abs(EdgeRecord.scaled_interaction) >= wanted.min_abs_weight,
    )
    if wanted.selected is not None:
        query = query.where(EdgeRecord.selected == wanted.selected)
    if wanted.verdict is not None:
        query = query.where(EdgeRecord.verdict == wanted.verdict)
    return list(session.scalars(query.order_by(EdgeRecord.rank).limit(limit)))
