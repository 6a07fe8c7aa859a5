"""Subsets of a table's rows, and how far its network stays what it is in them.

What the fit to the whole table has chosen is held, as where rows are drawn with replacement.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.estimators.bootstrap import MOST_RESAMPLES, fit_resamples, network_of
from vnce_engine.estimators.refits import codes_as_fitted
from vnce_engine.estimators.seeds import RandomState, seed_of
from vnce_engine.inference.correlation_stability import (
    DROPPED,
    CorrelationStability,
    correlate,
    dropped_of,
)
from vnce_engine.runtime.checks import check_count
from vnce_engine.runtime.progress import OnStep


def correlation_stability(
    estimator: NetworkEstimator,
    X: ArrayLike,
    n_subsets: int = 200,
    random_state: RandomState = 0,
    on_step: OnStep | None = None,
    clusters: ArrayLike | None = None,
) -> CorrelationStability:
    """Return how far the network of an `estimator`, fitted to X (n, d), stays so in subsets of X.

    Subsets are rows of X with something observed, drawn without replacement; the first lacks a
    twentieth of them, the tenth three quarters, the eleventh a twentieth again, and so on: for a
    coefficient to two digits a hundred of each are needed. Of an estimator that was fitted with
    `clusters` (n,), given here again, whole clusters are drawn. `on_step` is called as by `fit`;
    returning True raises `FitCancelledError`.

    Raises `ValueError` unless there are 10 to 2,000 subsets, where there are clusters here and not
    in the fit or the reverse, and where the graph was chosen by half-samples; `NotFittedError` for
    an estimator that is not fitted.
    """
    check_is_fitted(estimator)
    check_count("n_subsets", n_subsets, least=len(DROPPED), most=MOST_RESAMPLES)
    table, choices = estimator.read(X), estimator.choices()
    codes = codes_as_fitted(estimator, clusters, len(table))
    seed = seed_of(random_state)
    outcomes = fit_resamples(
        estimator, choices, table, range(n_subsets), seed, on_step, draw=subset, clusters=codes
    )
    return correlate(outcomes, network_of(estimator), table.shape[1])


def subset(rng: np.random.Generator, num_rows: int, number: int) -> NDArray[np.int64]:
    """Return the rows of a numbered subset of so many, without what it lacks."""
    kept = max(round((1 - dropped_of(number)) * num_rows), 1)
    return rng.choice(num_rows, size=kept, replace=False)
