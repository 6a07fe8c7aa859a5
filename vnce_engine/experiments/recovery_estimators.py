"""The estimators that graph recovery compares, by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnce_engine.estimators import TruncatedGaussianNCE, TruncatedGaussianVNCE
from vnce_engine.progress import OnStep
from vnce_engine.result import FitStatus

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RecoveryEstimator:
    """An estimator of K from a table (n, d) with holes."""

    title: str
    make: Callable[[], Any]
    """Returns an unfitted estimator of this package; they share no base class to name here."""
    seconds: float
    """CPU seconds of a fit to 1,000 rows of 20 columns, 30 % missing."""

    def fit(self, X: FloatArray, on_step: OnStep | None) -> tuple[FloatArray, FitStatus]:
        """Return K (d, d) and how the fit ended."""
        estimator = self.make().fit(X, on_step=on_step)
        return estimator.precision_, estimator.status_


ESTIMATORS: dict[str, RecoveryEstimator] = {
    "vnce": RecoveryEstimator("VNCE", lambda: TruncatedGaussianVNCE(random_state=0), seconds=1.5),
    "vnce-paper": RecoveryEstimator(
        "VNCE, paper's recipe",
        lambda: TruncatedGaussianVNCE(preset="paper", random_state=0),
        seconds=7.0,
    ),
    "nce-mean": RecoveryEstimator(
        "NCE, mean-filled", lambda: TruncatedGaussianNCE(random_state=0), seconds=1.0
    ),
    "nce-mean-paper": RecoveryEstimator(
        "NCE, mean-filled, as in the paper",
        lambda: TruncatedGaussianNCE(linear="zero", penalty=None, random_state=0),
        seconds=0.3,
    ),
    "nce-zero": RecoveryEstimator(
        "NCE, zero-filled",
        lambda: TruncatedGaussianNCE(imputation="zero", random_state=0),
        seconds=1.0,
    ),
}
