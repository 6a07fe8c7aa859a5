"""From a job's spec to the engine's estimator."""

from typing import Literal, assert_never

from service.jobs.specs.estimation import EstimationSpec, NceEstimatorSpec, VnceEstimatorSpec
from service.jobs.vocabulary import PenaltyChoice
from vnce_engine import TruncatedGaussianNCE, TruncatedGaussianVNCE

Estimator = TruncatedGaussianVNCE | TruncatedGaussianNCE


def build_estimator(spec: EstimationSpec) -> Estimator:
    """Return the unfitted estimator that the spec describes."""
    match spec.estimator:
        case VnceEstimatorSpec():
            return TruncatedGaussianVNCE(
                linear=spec.model.linear.value,
                transform=spec.model.transform.value,
                preset=spec.estimator.preset.value,
                penalty=_plain(spec.estimator.penalty),
                penalty_kind=spec.estimator.penalty_kind.value,
                noise_ratio=spec.estimator.noise_ratio,
                noise_draws=spec.estimator.noise_draws.value,
                max_iter=spec.estimator.max_iter,
                tol=spec.estimator.tol,
                edge_threshold=spec.edge_threshold,
                random_state=spec.seed,
            )
        case NceEstimatorSpec():
            return TruncatedGaussianNCE(
                linear=spec.model.linear.value,
                transform=spec.model.transform.value,
                imputation=spec.estimator.imputation.value,
                penalty=_plain(spec.estimator.penalty),
                penalty_kind=spec.estimator.penalty_kind.value,
                noise_ratio=spec.estimator.noise_ratio,
                noise_draws=spec.estimator.noise_draws.value,
                max_iter=spec.estimator.max_iter,
                tol=spec.estimator.tol,
                edge_threshold=spec.edge_threshold,
                random_state=spec.seed,
            )
        case _:
            assert_never(spec.estimator)


def _plain(penalty: PenaltyChoice | float | None) -> float | Literal["auto"] | None:
    """Return the penalty as the engine takes it."""
    return penalty.value if isinstance(penalty, PenaltyChoice) else penalty
