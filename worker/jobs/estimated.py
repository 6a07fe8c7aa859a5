"""Estimations that have succeeded, as what other jobs are about."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from service.http.problems import ProblemError, problem_document
from service.jobs import result_access as access
from service.jobs.result_records import EdgeRecord
from service.jobs.specs import spec_of
from service.jobs.specs.estimation import EstimationSpec
from service.results.bootstrap_result import HeldChoicesRead
from service.results.edges import Edge
from service.results.schemas import EstimationResult
from vnce_engine.estimators.choices import Choices
from vnce_engine.inference.resamples import Network
from worker.artefacts.report.methods import Paragraph, methods
from worker.jobs.failures import JobFailedError


@dataclass(frozen=True)
class Estimated:
    """An estimation: what was asked for, and what came of it."""

    spec: EstimationSpec
    result: EstimationResult
    network: Network
    # Of each pair, in the network's order: its standard error, and the rows that have both columns,
    # or the clusters if those are fewer.
    standard_error: NDArray[np.float64]
    num_pairwise: NDArray[np.int64]

    @classmethod
    def of(
        cls, spec: EstimationSpec, result: EstimationResult, edges: Iterable[Edge | EdgeRecord]
    ) -> Self:
        """Return the estimation that has left a document and these edges."""
        places = {name: place for place, name in enumerate(result.names)}
        ordered = sorted(edges, key=lambda edge: (places[edge.source], places[edge.target]))
        network = Network(
            np.array([edge.scaled_interaction for edge in ordered]),
            np.array([np.nan if edge.debiased is None else edge.debiased for edge in ordered]),
            np.array([float(edge.selected) for edge in ordered]),
        )
        errors = [
            np.nan if edge.standard_error is None else edge.standard_error for edge in ordered
        ]
        num_pairwise = np.array([edge.n_pairwise for edge in ordered])
        if result.counts.n_clusters is not None:
            num_pairwise = num_pairwise.clip(max=result.counts.n_clusters)
        return cls(spec, result, network, np.array(errors), num_pairwise)

    @property
    def choices(self) -> Choices:
        """What it has chosen."""
        penalty = self.result.penalty
        path = [] if penalty is None else penalty.path
        kind = None if penalty is None else penalty.fitted_kind
        scale, uncertainty = self.result.transform, self.result.uncertainty
        debiased = None if uncertainty is None else uncertainty.linear
        linear = debiased or self.result.linear.choice
        return Choices(
            linear=linear.value,
            penalty=None if penalty is None else penalty.strength,
            penalty_kind=None if kind is None else kind.value,
            relaxation=None if penalty is None else penalty.relaxation,
            graph_strength=next((step.strength for step in path if step.chosen), None),
            converged=self.result.convergence.converged,
            column_transform=[one.value for one in scale]
            if isinstance(scale, list)
            else scale.value,
        )

    def methods(self, job_id: str) -> Paragraph:
        """Return how it was estimated, by the job of this identifier."""
        return Paragraph(methods(self.spec, self.result), f"{self.result.dataset.name} ({job_id})")

    @property
    def held(self) -> HeldChoicesRead:
        """What it has chosen, as results of fits by these choices say it."""
        return HeldChoicesRead.model_validate(
            {"transform": self.result.transform, **asdict(self.choices)}
        )


def load_estimated(session: Session, job_id: str) -> Estimated:
    """Return the estimation; raises `JobFailedError` if it has been deleted meanwhile."""
    try:
        job, result = access.estimation_of(session, job_id)
    except ProblemError as gone:
        message = f"{job_id}, which this job is about, cannot be read. {gone.detail}"
        raise JobFailedError(problem_document(gone.code, message)) from gone
    spec = spec_of(job.spec)
    assert isinstance(spec, EstimationSpec)  # its result is a network
    edges = session.scalars(select(EdgeRecord).where(EdgeRecord.job_id == job_id)).all()
    document = EstimationResult.model_validate({"kind": job.kind, **result.document})
    return Estimated.of(spec, document, edges)
