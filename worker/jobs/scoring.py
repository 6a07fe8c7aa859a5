"""One scoring: the network of an earlier estimation held against a graph."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from service.jobs import result_access as access
from service.jobs.specs.scoring import ScoringSpec
from service.results.outcome import Outcome
from service.results.scoring_result import ScoringResult
from vnce_engine.runtime.reports import FitStep
from worker.artefacts.exports.roc import adjacency, roc_artefacts, roc_curves, score_documents
from worker.artefacts.figures.drawing import figure_artefacts
from worker.artefacts.figures.roc import SCORE_LABELS, draw_roc
from worker.artefacts.ground_truth import pair
from worker.jobs.estimation import OnStep
from worker.jobs.failures import FitCancelledError
from worker.jobs.versions import versions


@dataclass(frozen=True)
class Estimate:
    """An estimated K (d, d) by the names of its variables."""

    names: list[str]
    precision: NDArray[np.float64]


def load_estimate(session: Session, spec: ScoringSpec) -> Estimate:
    """Return what is to be scored; raises `ProblemError` if it has been deleted meanwhile."""
    _, result = access.estimation_of(session, spec.job_id)
    document = result.document
    return Estimate(document["names"], np.array(document["precision"], dtype=np.float64))


def score(
    spec: ScoringSpec, estimate: Estimate, ground_truth: list[list[str]], on_step: OnStep
) -> Outcome:
    """Rank all pairs by every score and compare them with the graph's.

    `ground_truth` holds undirected pairs of names. Raises `FitCancelledError` if `on_step` asks
    to stop.
    """
    if on_step(FitStep(stage="score", fraction=0.0, iteration=0, objective=None)):
        raise FitCancelledError
    names = estimate.names
    truth = frozenset(pair(*edge) for edge in ground_truth)
    curves = roc_curves(estimate.precision, adjacency(names, truth))
    labelled = {SCORE_LABELS[score]: curve for score, curve in curves.items()}
    draw = partial(draw_roc, curves=labelled, title=f"Edge recovery: {spec.job_id}")
    return Outcome(
        document=ScoringResult(
            kind="scoring",
            scored_job_id=spec.job_id,
            names=names,
            n_true_edges=len(truth),
            n_pairs=len(names) * (len(names) - 1) // 2,
            scores=score_documents(curves),
            versions=versions(),
        ),
        edges=[],
        artefacts=[
            *roc_artefacts(curves),
            *figure_artefacts("roc", draw),
        ],
    )
