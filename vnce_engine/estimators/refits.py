"""Fits to parts, resamples and permutations of a table: one that is refused is counted, by why."""

from numpy.typing import ArrayLike

from vnce_engine.data.clusters import Codes, cluster_codes
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.runtime.checkpoint import Checkpoint, UnusableCheckpointError
from vnce_engine.runtime.progress import FitCancelledError, OnStep
from vnce_engine.runtime.reports import FitStatus


def refusal_of_fit(
    estimator: NetworkEstimator,
    X: ArrayLike,
    on_step: OnStep | None,
    checkpoint: Checkpoint,
    clusters: Codes | None,
) -> str | None:
    """Fit the estimator to X (n, d), in `clusters` (n,) or independent rows; return any refusal.

    Raises `FitCancelledError` if `on_step` returns True, and `UnusableCheckpointError`.
    """
    try:
        estimator.fit(X, on_step=on_step, checkpoint=checkpoint, clusters=clusters)
    except UnusableCheckpointError:
        raise
    except ValueError as refusal:  # such as: a column with too few observed cells
        return str(refusal)
    if estimator.status_ is FitStatus.CANCELLED:
        raise FitCancelledError
    return None


def codes_as_fitted(
    estimator: NetworkEstimator, clusters: ArrayLike | None, num_rows: int
) -> Codes | None:
    """Return the codes (n,) of the clusters of a table that an `estimator` was fitted to.

    Raises `ValueError` where it was fitted with clusters and there are none, or the reverse.
    """
    had_clusters = estimator.diagnostics_.num_clusters is not None
    if clusters is None and had_clusters:
        raise ValueError("the estimator was fitted with `clusters`: give them here, too")
    if clusters is not None and not had_clusters:
        raise ValueError("`clusters` need an estimator that was fitted with them")
    return None if clusters is None else cluster_codes(clusters, num_rows)
