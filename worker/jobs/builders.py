"""From a job's spec to the engine's estimator."""

from typing import Any, assert_never

from service.jobs.specs.base import planned
from service.jobs.specs.comparators import (
    ContrastiveDivergenceEstimatorSpec,
    GaussianEmEstimatorSpec,
    GaussianScoreMatchingEstimatorSpec,
    MleEstimatorSpec,
    PseudoLikelihoodEstimatorSpec,
    ScoreMatchingEstimatorSpec,
)
from service.jobs.specs.contrastive import NceEstimatorSpec, VnceEstimatorSpec
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.specs.models import GaussianModelSpec
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
from vnce_engine.estimators.base import NetworkEstimator


def build_estimator(spec: EstimationSpec) -> NetworkEstimator:
    """Return the unfitted estimator that the spec describes."""
    is_gaussian = isinstance(spec.model, GaussianModelSpec)
    choices = _choices(spec)
    match spec.estimator:
        case VnceEstimatorSpec() if is_gaussian:
            del choices["preset"]  # it has one alone
            return GaussianVNCE(**choices)
        case NceEstimatorSpec() if is_gaussian:
            return GaussianNCE(**choices)
        case VnceEstimatorSpec():
            return TruncatedGaussianVNCE(**choices)
        case NceEstimatorSpec():
            return TruncatedGaussianNCE(**choices)
        case MleEstimatorSpec():
            return TruncatedGaussianMLE(**choices)
        case ContrastiveDivergenceEstimatorSpec():
            choices["num_sweeps"] = choices.pop("n_sweeps")
            return TruncatedGaussianCD(**choices)
        case PseudoLikelihoodEstimatorSpec():
            return TruncatedGaussianPseudoLikelihood(**choices)
        case ScoreMatchingEstimatorSpec():
            return TruncatedGaussianScoreMatching(**choices)
        case GaussianEmEstimatorSpec():
            return GaussianEM(**choices)
        case GaussianScoreMatchingEstimatorSpec():
            return GaussianScoreMatching(**choices)
        case _ as unknown:
            assert_never(unknown)


def _choices(spec: EstimationSpec) -> dict[str, Any]:
    """Return what the spec says, by parameter: its names and words are the engine's own."""
    # By JSON a word is a plain string.
    model = spec.model.model_dump(mode="json", exclude={"kind"})
    return {
        # scikit-learn's `transform` is a method.
        "column_transform": model.pop("transform"),
        "min_observed": spec.min_observed,
        "edge_threshold": spec.edge_threshold,
        "random_state": planned(spec.seed),
        **model,
        **spec.estimator.model_dump(mode="json", exclude={"kind"}),
    }
