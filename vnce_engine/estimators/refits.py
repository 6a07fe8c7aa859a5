"""Fits to parts, resamples and permutations of a table: one that is refused is counted, by why."""

from numpy.typing import ArrayLike

from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.runtime.checkpoint import Checkpoint, UnusableCheckpointError
from vnce_engine.runtime.progress import FitCancelledError, OnStep
from vnce_engine.runtime.reports import FitStatus


def refusal_of_fit(
    estimator: NetworkEstimator, X: ArrayLike, on_step: OnStep | None, checkpoint: Checkpoint
) -> str | None:
    """Fit the estimator to X (n, d); return why X is refused, None where it is not.

    Raises `FitCancelledError` if `on_step` returns True, and `UnusableCheckpointError`.
    """
    try:
        estimator.fit(X, on_step=on_step, checkpoint=checkpoint)
    except UnusableCheckpointError:
        raise
    except ValueError as refusal:  # such as: a column with too few observed cells
        return str(refusal)
    if estimator.status_ is FitStatus.CANCELLED:
        raise FitCancelledError
    return None
