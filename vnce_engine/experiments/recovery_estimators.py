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


def _vnce(**options: Any) -> Callable[[], TruncatedGaussianVNCE]:
    return lambda: TruncatedGaussianVNCE(random_state=0, **options)


def _nce(**options: Any) -> Callable[[], TruncatedGaussianNCE]:
    return lambda: TruncatedGaussianNCE(random_state=0, **options)


# The paper's form of NCE: no linear term and no penalty.
_PAPERS: dict[str, Any] = {"linear": "zero", "penalty": None}

ESTIMATORS: dict[str, RecoveryEstimator] = {
    "vnce": RecoveryEstimator("VNCE", _vnce(), 1.6),
    "vnce-ridge": RecoveryEstimator("VNCE, ridge", _vnce(penalty_kind="ridge"), 1.6),
    "vnce-l1": RecoveryEstimator("VNCE, L1", _vnce(penalty_kind="l1"), 2.5),
    "vnce-ebic": RecoveryEstimator(
        "VNCE, L1, eBIC and refit", _vnce(penalty_kind="l1", selection="ebic"), 2.5
    ),
    "vnce-barrier": RecoveryEstimator(
        "VNCE, K kept definite", _vnce(positive_definite="barrier"), 1.8
    ),
    "vnce-paper": RecoveryEstimator("VNCE, paper's recipe", _vnce(preset="paper"), 8.0),
    "nce-mean": RecoveryEstimator("NCE, mean-filled", _nce(imputation="mean", **_PAPERS), 0.2),
    "nce-mean-penalised": RecoveryEstimator(
        "NCE, mean-filled, penalised", _nce(imputation="mean"), 0.7
    ),
    "nce-zero": RecoveryEstimator("NCE, zero-filled", _nce(imputation="zero", **_PAPERS), 0.2),
    "nce-noise": RecoveryEstimator("NCE, noise-filled", _nce(imputation="noise", **_PAPERS), 0.2),
    # Few complete rows are left, and without a penalty too few for so many parameters.
    "nce-drop": RecoveryEstimator(
        "NCE, complete rows", _nce(imputation="drop", linear="zero"), 0.2
    ),
}
