"""From a fitted estimator to the result document."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from service.datasets.schemas import DatasetWarning
from service.jobs.specs.base import planned
from service.jobs.specs.comparators import (
    GaussianEmEstimatorSpec,
    GaussianScoreMatchingEstimatorSpec,
    PseudoLikelihoodEstimatorSpec,
    ScoreMatchingEstimatorSpec,
)
from service.jobs.specs.contrastive import ContrastiveSpec, NceEstimatorSpec
from service.jobs.vocabulary import (
    FdrMethod,
    Filling,
    Imputation,
    LassoChoice,
    LinearChoice,
    PenaltyChoice,
    PenaltyKind,
    Selection,
)
from service.results.choices import (
    LinearEvidence,
    LinearTermRead,
    PenaltyRead,
    PenaltyStep,
    StabilityRead,
    TransformStep,
)
from service.results.schemas import (
    ConvergenceRead,
    CountsRead,
    DatasetIdentity,
    DiagnosticsRead,
    EdgeRuleRead,
    EstimationResult,
    TimingRead,
    UncertaintyRead,
)
from service.results.vocabulary import EdgeRule, FitStatus, Verdict
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.inference.result import LinearEvidence as EngineEvidence
from vnce_engine.inference.result import Stability
from worker.artefacts.exports.graph import left_out_warnings
from worker.artefacts.exports.roc import score_documents
from worker.artefacts.fitted import FittedNetwork, applied
from worker.jobs.result_warnings import (
    as_options,
    censoring_warnings,
    imputation_warnings,
    table_and_engine_warnings,
)
from worker.jobs.versions import versions

COMPLETE = "No cell is missing, so nothing is assumed about missing cells."
MCAR = (
    "Valid if cells are missing completely at random: whether a cell is missing must depend "
    "neither on its own value nor on those of other cells."
)
_MAR = (
    "Valid if cells are missing at random: whether a cell is missing may depend on observed cells "
    "of its row, but not on its own value."
)
_METHODS = {
    FdrMethod.BENJAMINI_HOCHBERG: "Benjamini-Hochberg",
    FdrMethod.BENJAMINI_YEKUTIELI: "Benjamini-Yekutieli",
}
FILLED = (
    "Biased whatever makes cells missing: they were filled before the fit, and the bias grows with "
    "their share."
)


def encode(
    fitted: FittedNetwork,
    dataset: DatasetIdentity,
    censored: dict[str, int],
    table_warnings: Sequence[DatasetWarning],
    *,
    fit_seconds: float,
    export_seconds: float,
    resumed: bool,
) -> EstimationResult:
    """Return the document of a finished fit.

    `censored` counts, by variable, the cells that hold a limit and were treated as missing;
    `table_warnings` are those of the upload, all columns of which it may concern.
    """
    estimator, spec = fitted.estimator, fitted.spec
    return EstimationResult(
        kind="estimation",
        names=planned(spec.variables),
        transform=fitted.transform,
        transform_evidence=[
            TransformStep(
                transform=applied(step.transform),
                log_density=finite(step.log_density),
                standard_error=finite(step.standard_error),
                chosen=step.chosen,
            )
            for step in estimator.transform_evidence_
        ],
        precision=estimator.precision_.tolist(),
        linear=_linear(fitted),
        log_partition=estimator.log_partition_,
        penalty=_penalty(fitted),
        stability=_stability(fitted),
        convergence=_convergence(estimator),
        diagnostics=_diagnostics(estimator),
        warnings=[
            *censoring_warnings(censored),
            *table_and_engine_warnings(fitted, table_warnings),
            *left_out_warnings(fitted.edges),
            *imputation_warnings(fitted),
        ],
        assumption=_assumption(fitted),
        counts=_counts(fitted, censored),
        edge_rule=_edge_rule(fitted),
        uncertainty=_uncertainty(fitted),
        variables=fitted.variables,
        scores=score_documents(fitted.roc_curves),
        seed=planned(spec.seed),
        versions=versions(),
        dataset=dataset,
        timing=TimingRead(
            fit_seconds=fit_seconds,
            export_seconds=export_seconds,
            n_threads=torch.get_num_threads(),
            resumed=resumed,
        ),
    )


def _assumption(fitted: FittedNetwork) -> str:
    if not np.isnan(fitted.X).any():
        return COMPLETE
    match fitted.spec.estimator:
        case GaussianEmEstimatorSpec():
            return _MAR
        case (
            NceEstimatorSpec(imputation=Imputation.MEAN | Imputation.ZERO | Imputation.NOISE)
            | PseudoLikelihoodEstimatorSpec(imputation=Filling.MEAN | Filling.ZERO)
            | ScoreMatchingEstimatorSpec(imputation=Filling.MEAN | Filling.ZERO)
        ):
            return FILLED
        case _:
            return MCAR


def _linear(fitted: FittedNetwork) -> LinearTermRead:
    estimator, model = fitted.estimator, fitted.spec.model
    evidence = estimator.linear_evidence_
    return LinearTermRead(
        requested=model.linear,
        choice=LinearChoice(estimator.linear_choice_),
        values=estimator.linear_.tolist(),
        evidence=None if evidence is None else _evidence(evidence),
    )


def _evidence(evidence: EngineEvidence) -> LinearEvidence:
    gain, standard_error = finite(evidence.gain), finite(evidence.standard_error)
    is_known = gain is not None and standard_error is not None
    undecided = "; here the held-out objective was not finite, so it was left out"
    return LinearEvidence(
        gain=gain,
        standard_error=standard_error,
        rule=evidence.rule if is_known else f"{evidence.rule}{undecided}",
    )


def _penalty(fitted: FittedNetwork) -> PenaltyRead | None:
    match fitted.spec.estimator:
        case GaussianEmEstimatorSpec(penalty=penalty) if penalty is not None:
            return _penalty_read(fitted.estimator, PenaltyKind.L1, penalty)
        case GaussianScoreMatchingEstimatorSpec(penalty=penalty) if penalty is not None:
            return _penalty_read(fitted.estimator, PenaltyKind.RIDGE, penalty)
        case GaussianEmEstimatorSpec() | GaussianScoreMatchingEstimatorSpec():
            return None
        case ContrastiveSpec() as spec:
            return _penalty_read(fitted.estimator, spec.penalty_kind, spec.penalty)
        case spec if spec.penalty is not None:
            return _penalty_read(fitted.estimator, spec.penalty_kind, spec.penalty)
        case _:
            return None


def _penalty_read(
    estimator: NetworkEstimator,
    kind: PenaltyKind,
    requested: PenaltyChoice | LassoChoice | float | None,
) -> PenaltyRead:
    """Return what was asked for, and what the estimator says that K was fitted with."""
    selection, fitted_kind = estimator.selection_, estimator.penalty_kind_
    return PenaltyRead(
        kind=kind,
        fitted_kind=None if fitted_kind is None else PenaltyKind(fitted_kind),
        requested=requested,
        selection=None if selection is None else Selection(selection),
        strength=estimator.penalty_,
        relaxation=estimator.penalty_relaxation_,
        path=[
            PenaltyStep(
                kind=PenaltyKind(step.kind),
                strength=step.strength,
                criterion=finite(step.criterion),
                standard_error=finite(step.standard_error),
                n_edges=step.num_edges,
                chosen=step.chosen,
            )
            for step in estimator.penalty_path_
        ],
    )


def _stability(fitted: FittedNetwork) -> StabilityRead | None:
    stability = fitted.estimator.stability_
    if stability is None:
        return None
    return StabilityRead(
        n_requested=stability.n_requested,
        n_ok=stability.n_ok,
        n_failed=stability.n_failed,
        failures=dict(stability.failures),
        threshold=stability.threshold,
        mean_edges=stability.mean_edges,
        expected_false_edges=stability.expected_false_edges,
        reason=stability.reason,
        n_counted=_counted(stability, planned(fitted.spec.variables)),
    )


def _counted(stability: Stability, names: Sequence[str]) -> dict[str, int]:
    if stability.counted is None:
        return {}
    counts = stability.counted.diagonal().tolist()
    return {
        name: count for name, count in zip(names, counts, strict=True) if count < stability.n_ok
    }


def _convergence(estimator: NetworkEstimator) -> ConvergenceRead:
    path, changes = estimator.objective_path_, estimator.column_change_
    return ConvergenceRead(
        status=FitStatus(estimator.status_),
        converged=estimator.converged_,
        message=as_options(estimator.message_),
        n_iter=estimator.n_iter_,
        objective=finite(path[-1]) if len(path) else None,
        gradient_norm=finite(estimator.diagnostics_.gradient_norm),
        column_change=None if changes is None else [finite(change) for change in changes.tolist()],
    )


def _diagnostics(estimator: NetworkEstimator) -> DiagnosticsRead:
    diagnostics = estimator.diagnostics_
    return DiagnosticsRead(
        is_positive_definite=diagnostics.is_positive_definite,
        smallest_eigenvalue=diagnostics.smallest_eigenvalue,
        separated_share=finite(diagnostics.separated_share),
        mean_classification=finite(diagnostics.mean_classification),
        effective_sample_size=finite(diagnostics.effective_sample_size),
        n_draws=diagnostics.num_draws,
        largest_interaction=finite(diagnostics.largest_interaction),
        noise_ratio=finite(diagnostics.noise_ratio),
    )


def _counts(fitted: FittedNetwork, censored: dict[str, int]) -> CountsRead:
    missing = np.isnan(fitted.X)
    return CountsRead(
        n_rows=len(missing),
        n_empty_rows=int(missing.all(axis=1).sum()),
        n_fitted_rows=_num_fitted_rows(fitted, missing),
        n_clusters=fitted.estimator.diagnostics_.num_clusters,
        n_variables=missing.shape[1],
        n_missing=int(missing.sum()),
        n_censored=sum(censored.values()),
    )


def _num_fitted_rows(fitted: FittedNetwork, missing: NDArray[np.bool_]) -> int:
    match fitted.spec.estimator:
        case (
            NceEstimatorSpec(imputation=Imputation.DROP)
            | PseudoLikelihoodEstimatorSpec(imputation=Filling.DROP)
            | ScoreMatchingEstimatorSpec(imputation=Filling.DROP)
        ):
            return int((~missing.any(axis=1)).sum())
        case NceEstimatorSpec():
            return len(missing)
        case _:
            return int((~missing.all(axis=1)).sum())


def _edge_rule(fitted: FittedNetwork) -> EdgeRuleRead:
    decided_by = EdgeRule(fitted.estimator.edge_rule_)
    return EdgeRuleRead(
        decided_by=decided_by,
        threshold=fitted.spec.edge_threshold,
        text=_rule_in_words(fitted, decided_by),
        n_selected=sum(edge.selected for edge in fitted.edges),
        n_pairs=len(fitted.edges),
    )


def _rule_in_words(fitted: FittedNetwork, decided_by: EdgeRule) -> str:
    if fitted.reason is not None:
        return f"No pair is selected: {fitted.reason}. Pairs are ranked by |scaled interaction|."
    threshold, estimator = fitted.spec.edge_threshold, fitted.spec.estimator
    match decided_by, estimator:
        case EdgeRule.FALSE_DISCOVERY_RATE, ContrastiveSpec(fdr=rate, fdr_method=method):
            return (
                f"A pair is selected when its q-value ({_METHODS[method]}) is at most {rate:g} and "
                "its interval not all of -1 to 1: the expected share of false edges among those "
                "selected is at most that."
            )
        case _:
            return (
                f"A pair is selected when |partial correlation| is at least {threshold:g}: a rule "
                "for display, not a test."
            )


def _uncertainty(fitted: FittedNetwork) -> UncertaintyRead:
    reason, spec = fitted.estimator.no_uncertainty_, fitted.spec.estimator
    if reason is not None or not isinstance(spec, ContrastiveSpec):
        return UncertaintyRead(
            reason=reason,
            linear=None,
            fdr=None,
            fdr_method=None,
            n_present=None,
            n_absent=None,
            n_undecided=None,
        )
    verdicts = Counter(edge.verdict for edge in fitted.edges)
    return UncertaintyRead(
        reason=None,
        linear=LinearChoice(fitted.estimator.choices().linear),
        fdr=spec.fdr,
        fdr_method=spec.fdr_method,
        n_present=verdicts[Verdict.PRESENT],
        n_absent=verdicts[Verdict.ABSENT],
        n_undecided=verdicts[Verdict.UNDECIDED],
    )


def finite(value: float | None) -> float | None:
    """Return a number that JSON can hold; None for one that is not finite."""
    return value if value is not None and math.isfinite(value) else None
