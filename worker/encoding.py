"""From a fitted estimator to the result document."""

import math
from typing import assert_never

import numpy as np
import torch
from numpy.typing import NDArray

from service.jobs.specs.estimation import NceEstimatorSpec, VnceEstimatorSpec
from service.jobs.vocabulary import Imputation, LinearChoice
from service.results.schemas import (
    ConvergenceRead,
    CountsRead,
    DatasetIdentity,
    DiagnosticsRead,
    EdgeRuleRead,
    EstimationResult,
    LinearEvidence,
    LinearTermRead,
    PenaltyRead,
    PenaltyStep,
    ResultWarning,
    TimingRead,
)
from service.results.vocabulary import FitStatus
from worker.builders import Estimator
from worker.exports.graph import left_out_warnings
from worker.exports.roc import score_documents
from worker.fitted import FittedNetwork
from worker.versions import versions

COMPLETE = "No cell is missing, so nothing is assumed about missing cells."
MISSING_COMPLETELY_AT_RANDOM = (
    "Valid if cells are missing completely at random: that a cell is missing must depend neither "
    "on its own value nor on those of other cells."
)


FILLED = (
    "None that would make it valid: missing cells were filled before the fit. A comparator, biased "
    "the more, the more cells are missing."
)


def encode(
    fitted: FittedNetwork,
    dataset: DatasetIdentity,
    censored: dict[str, int],
    *,
    fit_seconds: float,
    export_seconds: float,
) -> EstimationResult:
    """Return the document of a finished fit.

    `censored` counts, by variable, the cells that hold a limit and were treated as missing.
    """
    estimator, spec = fitted.estimator, fitted.spec
    return EstimationResult(
        kind="estimation",
        names=spec.variables,
        transform=spec.model.transform,
        precision=estimator.precision_.tolist(),
        linear=_linear(fitted),
        log_partition=estimator.log_partition_,
        penalty=_penalty(fitted),
        convergence=_convergence(estimator),
        diagnostics=_diagnostics(estimator),
        warnings=[
            *_censoring_warnings(censored),
            *_engine_warnings(estimator),
            *left_out_warnings(fitted.edges),
        ],
        assumption=_assumption(fitted),
        counts=_counts(fitted, censored),
        edge_rule=_edge_rule(fitted),
        scores=score_documents(fitted.roc_curves),
        seed=spec.seed,
        versions=versions(),
        dataset=dataset,
        timing=TimingRead(
            fit_seconds=fit_seconds,
            export_seconds=export_seconds,
            n_threads=torch.get_num_threads(),
        ),
    )


def _assumption(fitted: FittedNetwork) -> str:
    if not np.isnan(fitted.X).any():
        return COMPLETE
    match fitted.spec.estimator:
        case VnceEstimatorSpec() | NceEstimatorSpec(imputation=Imputation.DROP):
            return MISSING_COMPLETELY_AT_RANDOM
        case NceEstimatorSpec():
            return FILLED


def _linear(fitted: FittedNetwork) -> LinearTermRead:
    estimator = fitted.estimator
    evidence = estimator.linear_evidence_
    return LinearTermRead(
        requested=fitted.spec.model.linear,
        choice=LinearChoice(estimator.linear_choice_),
        values=estimator.linear_.tolist(),
        evidence=None
        if evidence is None
        else LinearEvidence(
            gain=evidence.gain, standard_error=evidence.standard_error, rule=evidence.rule
        ),
    )


def _penalty(fitted: FittedNetwork) -> PenaltyRead:
    spec = fitted.spec.estimator
    return PenaltyRead(
        kind=spec.penalty_kind,
        requested=spec.penalty,
        strength=fitted.estimator.penalty_,
        path=[
            PenaltyStep(
                strength=step.strength,
                held_out_objective=_finite(step.criterion),
                standard_error=_finite(step.standard_error),
                chosen=step.chosen,
            )
            for step in fitted.estimator.penalty_path_
        ],
    )


def _convergence(estimator: Estimator) -> ConvergenceRead:
    path = estimator.objective_path_
    return ConvergenceRead(
        status=FitStatus(estimator.status_),
        converged=estimator.converged_,
        message=estimator.message_,
        n_iter=estimator.n_iter_,
        objective=_finite(path[-1]) if len(path) else None,
        gradient_norm=_finite(estimator.diagnostics_.gradient_norm),
    )


def _diagnostics(estimator: Estimator) -> DiagnosticsRead:
    diagnostics = estimator.diagnostics_
    return DiagnosticsRead(
        is_positive_definite=diagnostics.is_positive_definite,
        smallest_eigenvalue=diagnostics.smallest_eigenvalue,
        separated_share=_finite(diagnostics.separated_share),
        mean_classification=_finite(diagnostics.mean_classification),
        effective_sample_size=_finite(diagnostics.effective_sample_size),
        n_draws=diagnostics.num_draws,
        largest_interaction=_finite(diagnostics.largest_interaction),
        noise_ratio=_finite(diagnostics.noise_ratio),
    )


def _censoring_warnings(censored: dict[str, int]) -> list[ResultWarning]:
    if not censored:
        return []
    counts = ", ".join(f"{count} in {name}" for name, count in censored.items())
    return [
        ResultWarning(
            code="censored-as-missing",
            message="Cells that hold a limit, such as <0.5, were treated as missing, which biases "
            f"the estimates: {counts}.",
            columns=list(censored),
        )
    ]


def _engine_warnings(estimator: Estimator) -> list[ResultWarning]:
    return [
        ResultWarning(code=warning.code, message=warning.message, columns=list(warning.columns))
        for warning in estimator.warnings_
    ]


def _counts(fitted: FittedNetwork, censored: dict[str, int]) -> CountsRead:
    missing = np.isnan(fitted.X)
    return CountsRead(
        n_rows=len(missing),
        n_empty_rows=int(missing.all(axis=1).sum()),
        n_fitted_rows=_num_fitted_rows(fitted, missing),
        n_variables=missing.shape[1],
        n_missing=int(missing.sum()),
        n_censored=sum(censored.values()),
    )


def _num_fitted_rows(fitted: FittedNetwork, missing: NDArray[np.bool_]) -> int:
    estimator = fitted.spec.estimator
    match estimator:
        case VnceEstimatorSpec():
            return int((~missing.all(axis=1)).sum())
        case NceEstimatorSpec(imputation=Imputation.DROP):
            return int((~missing.any(axis=1)).sum())
        case NceEstimatorSpec():
            return len(missing)
        case _:
            assert_never(estimator)


def _edge_rule(fitted: FittedNetwork) -> EdgeRuleRead:
    threshold = fitted.spec.edge_threshold
    return EdgeRuleRead(
        threshold=threshold,
        text=f"A pair is selected when |partial correlation| is at least {threshold:g}: a rule for "
        "display, not a test.",
        n_selected=sum(edge.selected for edge in fitted.edges),
        n_pairs=len(fitted.edges),
    )


def _finite(value: float | None) -> float | None:
    """Return a number that JSON can hold; None for one that is not finite."""
    return value if value is not None and math.isfinite(value) else None
