"""From a job's spec to the engine's estimator."""

from typing import Any, Literal, assert_never

from service.jobs.specs.base import planned
from service.jobs.specs.comparators import (
    ContrastiveDivergenceEstimatorSpec,
    GaussianEmEstimatorSpec,
    GaussianScoreMatchingEstimatorSpec,
    MleEstimatorSpec,
    PseudoLikelihoodEstimatorSpec,
    ScoreMatchingEstimatorSpec,
)
from service.jobs.specs.contrastive import ContrastiveSpec, NceEstimatorSpec, VnceEstimatorSpec
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.specs.models import GaussianModelSpec, TruncatedGaussianModelSpec
from service.jobs.vocabulary import LassoChoice, PenaltyChoice
from vnce_engine import (
    GaussianEM,
    GaussianNCE,
    GaussianScoreMatching,
    GaussianVNCE,
    TruncatedGaussianCD,
    TruncatedGaussianMLE,
    TruncatedGaussianNCE,
    TruncatedGaussianPseudoLikelihood,
    TruncatedGaussianScoreMatching,
    TruncatedGaussianVNCE,
)
from worker.artefacts.fitted import Estimator


def build_estimator(spec: EstimationSpec) -> Estimator:
    """Return the unfitted estimator that the spec describes."""
    # What every estimator has; the names and words of a spec are the engine's own.
    common: dict[str, Any] = {
        "column_transform": spec.model.transform.value,
        "min_observed": spec.min_observed,
        "edge_threshold": spec.edge_threshold,
        "random_state": planned(spec.seed),
    }
    match spec.estimator:
        case VnceEstimatorSpec() as estimator if isinstance(spec.model, GaussianModelSpec):
            return GaussianVNCE(**common, **_contrastive(estimator))
        case NceEstimatorSpec() as estimator if isinstance(spec.model, GaussianModelSpec):
            filling: dict[str, Any] = {"imputation": estimator.imputation.value}
            return GaussianNCE(**common, **_contrastive(estimator), **filling)
        case VnceEstimatorSpec() as estimator:
            return TruncatedGaussianVNCE(
                **common,
                **_contrastive(estimator),
                **_on_the_half_line(spec),
                preset=estimator.preset.value,
            )
        case NceEstimatorSpec() as estimator:
            return TruncatedGaussianNCE(
                **common,
                **_contrastive(estimator),
                **_on_the_half_line(spec),
                imputation=estimator.imputation.value,
            )
        case MleEstimatorSpec() as estimator:
            return TruncatedGaussianMLE(
                **common,
                linear=_linear(spec),
                method=estimator.method.value,
                step_size=estimator.step_size,
                **_penalty(estimator),
                max_iter=estimator.max_iter,
                tol=estimator.tol,
            )
        case ContrastiveDivergenceEstimatorSpec() as estimator:
            return TruncatedGaussianCD(
                **common,
                linear=_linear(spec),
                persistent=estimator.persistent,
                num_sweeps=estimator.n_sweeps,
                step_size=estimator.step_size,
                **_penalty(estimator),
                max_iter=estimator.max_iter,
            )
        case PseudoLikelihoodEstimatorSpec() as estimator:
            return TruncatedGaussianPseudoLikelihood(
                **common,
                linear=_linear(spec),
                imputation=estimator.imputation.value,
                **_penalty(estimator),
                max_iter=estimator.max_iter,
                tol=estimator.tol,
            )
        case ScoreMatchingEstimatorSpec() as estimator:
            return TruncatedGaussianScoreMatching(
                **common,
                linear=_linear(spec),
                imputation=estimator.imputation.value,
                weight=estimator.weight.value,
                **_penalty(estimator),
                max_iter=estimator.max_iter,
                tol=estimator.tol,
            )
        case GaussianEmEstimatorSpec() as estimator:
            return GaussianEM(
                **common,
                penalty=_lasso(estimator.penalty),
                ebic_gamma=estimator.ebic_gamma,
                max_iter=estimator.max_iter,
                tol=estimator.tol,
            )
        case GaussianScoreMatchingEstimatorSpec() as estimator:
            given = estimator.penalty
            return GaussianScoreMatching(
                **common,
                penalty="cv" if isinstance(given, LassoChoice) else given,
                max_iter=estimator.max_iter,
                tol=estimator.tol,
            )
        case _ as unknown:
            assert_never(unknown)


def _on_the_half_line(spec: EstimationSpec) -> dict[str, Any]:
    """Return what VNCE and NCE of a truncated Gaussian have of their own."""
    return {"linear": _linear(spec)}


def _contrastive(estimator: ContrastiveSpec) -> dict[str, Any]:
    """Return what VNCE and NCE of all models share."""
    return {
        "penalty": _plain(estimator.penalty),
        "penalty_kind": estimator.penalty_kind.value,
        "penalties": estimator.penalties,
        "selection": estimator.selection.value,
        "ebic_gamma": estimator.ebic_gamma,
        "n_subsamples": estimator.n_subsamples,
        "inclusion_threshold": estimator.inclusion_threshold,
        "max_false_edges": estimator.max_false_edges,
        "noise_ratio": estimator.noise_ratio,
        "noise_scale": estimator.noise_scale,
        "noise_draws": estimator.noise_draws.value,
        "max_iter": estimator.max_iter,
        "tol": estimator.tol,
    }


def _penalty(
    estimator: MleEstimatorSpec
    | ContrastiveDivergenceEstimatorSpec
    | PseudoLikelihoodEstimatorSpec
    | ScoreMatchingEstimatorSpec,
) -> dict[str, Any]:
    """Return what comparators have of a penalty."""
    return {"penalty": estimator.penalty, "penalty_kind": estimator.penalty_kind.value}


def _linear(spec: EstimationSpec) -> Literal["auto", "zero", "free"]:
    """Return whether the linear term of a truncated Gaussian is estimated."""
    assert isinstance(spec.model, TruncatedGaussianModelSpec)  # judged when it was submitted
    return spec.model.linear.value


def _plain(penalty: PenaltyChoice | float | None) -> float | Literal["auto"] | None:
    """Return the penalty as the engine takes it."""
    return penalty.value if isinstance(penalty, PenaltyChoice) else penalty


def _lasso(penalty: LassoChoice | float | None) -> float | Literal["ebic", "cv"] | None:
    return penalty.value if isinstance(penalty, LassoChoice) else penalty
