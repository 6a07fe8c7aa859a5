"""What the contrastive estimators of the truncated Gaussian share: their parameters."""

import math

from vnce_engine.fit import AUTO, MAX_CYCLES, FitOptions
from vnce_engine.network_estimator import (
    NetworkEstimator,
    RandomState,
    check_choice,
    check_count,
    check_number,
    check_range,
)
from vnce_engine.penalty import PenaltyKind

__all__ = ["RandomState", "TruncatedGaussianEstimator", "check_choice"]


class TruncatedGaussianEstimator(NetworkEstimator):
    """A truncated Gaussian network, fitted by telling data from noise."""

    linear: str
    penalty: float | str | None
    penalty_kind: str
    noise_ratio: int
    noise_draws: str
    max_iter: int | None
    tol: float

    def _options(self) -> FitOptions:
        return FitOptions(
            linear=self.linear,
            penalty=self.penalty,
            penalty_kind=PenaltyKind(self.penalty_kind),
            noise_ratio=self.noise_ratio,
            noise_draws=self.noise_draws,
            tolerance=self.tol,
            max_cycles=MAX_CYCLES if self.max_iter is None else self.max_iter,
        )

    def _check_parameters(self) -> None:
        check_choice("linear", self.linear, (AUTO, "free", "zero"))
        check_choice("penalty_kind", self.penalty_kind, tuple(PenaltyKind))
        check_choice("noise_draws", self.noise_draws, ("sobol", "random"))
        if self.penalty is not None and self.penalty != AUTO:
            check_number("penalty", self.penalty, "'auto', None or a positive number", 0, math.inf)
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)
        check_count("noise_ratio", self.noise_ratio)
        check_number("tol", self.tol, "a number between 0 and 1", 0, 1)
        check_range("edge_threshold", self.edge_threshold, 0, 1)
