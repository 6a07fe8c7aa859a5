"""What the parts of an experiment have left, for the job that puts them together."""

import json
from dataclasses import dataclass

from sqlalchemy.orm import Session

from service.db import blobs
from service.http.problems import Problem
from service.jobs import job_parts
from service.jobs.records import JobRecord
from service.jobs.result_records import ArtefactRecord, ResultRecord
from service.results.experiment_result import ExperimentPartResult, PartFailureRead
from vnce_engine.experiments.experiment import Row

ROWS = "rows.json"


@dataclass(frozen=True)
class FinishedParts:
    """All parts of an experiment: what came of those that have a result, and the others."""

    num_parts: int
    rows: list[Row]
    results: list[ExperimentPartResult]
    failures: list[PartFailureRead]


def load_parts(session: Session, parent_id: str) -> FinishedParts:
    """Return what became of every part, in their order; none is left out."""
    rows: list[Row] = []
    results = []
    failures = []
    parts = job_parts.parts_of(session, parent_id)
    for part in parts:
        stored = session.get(ResultRecord, part.id)
        if stored is None:
            failures.append(_failure(part))
            continue
        results.append(ExperimentPartResult.model_validate(stored.document))
        artefact = session.get_one(ArtefactRecord, (part.id, ROWS))
        rows += json.loads(blobs.load(session, artefact.blob_id))
    return FinishedParts(len(parts), rows, results, failures)


def _failure(part: JobRecord) -> PartFailureRead:
    return PartFailureRead(
        job_id=part.id,
        label=part.spec["label"],
        error=None if part.error is None else Problem.model_validate(part.error),
    )
