"""Jobs in parts: what they are split into, and what the parts have left to be put together."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.db import blobs
from service.http.problems import Problem, ProblemCode, problem_document
from service.jobs import job_parts
from service.jobs.records import JobRecord
from service.jobs.result_records import ArtefactRecord, ResultRecord
from service.jobs.specs import JobSpec
from service.results.parts_result import PartFailureRead, PartResult
from worker.jobs.failures import JobFailedError


@dataclass(frozen=True)
class Split:
    """The jobs that a job is split into."""

    parts: Sequence[JobSpec]


@dataclass(frozen=True)
class FinishedParts:
    """All parts of a job: what came of those that have a result, and the others."""

    num_parts: int
    # The files that each of those with a result has left, by name, in order.
    files: list[dict[str, bytes]]
    results: list[PartResult]
    failures: list[PartFailureRead]

    def contents(self, name: str) -> list[bytes]:
        """Return the file of this name of each part that has left it, in order."""
        return [files[name] for files in self.files if name in files]

    def require_some(self) -> None:
        """Raise `JobFailedError` if no part has a result."""
        if self.results:
            return
        first = next((failure.error for failure in self.failures if failure.error), None)
        reason = "" if first is None else f" The first one: {first.detail}"
        raise JobFailedError(
            problem_document(
                ProblemCode.PARTS_FAILED, f"None of {self.num_parts} parts has a result.{reason}"
            )
        )

    def account(self) -> dict[str, Any]:
        """Return the fields of a `SplitResult`."""
        return {
            "n_parts": self.num_parts,
            "n_succeeded": len(self.results),
            "failures": self.failures,
            "n_workers": len({result.worker for result in self.results}),
            "part_seconds": sum(result.seconds for result in self.results),
        }


def load_parts(
    session: Session, parent_id: str, document: type[PartResult] = PartResult
) -> FinishedParts:
    """Return what became of every part, in their order; none is left out."""
    files, results, failures = [], [], []
    parts = job_parts.parts_of(session, parent_id)
    for part in parts:
        stored = session.get(ResultRecord, part.id)
        if stored is None:
            failures.append(_failure(part))
            continue
        results.append(document.model_validate(stored.document))
        left = session.scalars(select(ArtefactRecord).where(ArtefactRecord.job_id == part.id))
        files.append({one.name: blobs.load(session, one.blob_id) for one in left.all()})
    return FinishedParts(len(parts), files, results, failures)


def this_process() -> str:
    """Return what a part's result calls the process that ran it."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _failure(part: JobRecord) -> PartFailureRead:
    return PartFailureRead(
        job_id=part.id,
        label=part.spec["label"],
        error=None if part.error is None else Problem.model_validate(part.error),
    )
