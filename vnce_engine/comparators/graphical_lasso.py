"""The graphical lasso on an EM covariance, and two ways to choose its penalty.

Source: Friedman, Hastie and Tibshirani (2008); the criterion is that of Foygel and Drton (2010).
With missing cells the covariance is EM's and the criterion's likelihood that of the observed cells.
"""

import math
import warnings
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn import covariance as sklearn_covariance
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from vnce_engine.comparators.gaussian_em import (
    GaussianFit,
    fit_gaussian,
    observed_log_likelihood,
)
from vnce_engine.progress import FitCancelledError, Progress
from vnce_engine.result import FitStatus

FloatArray = NDArray[np.float64]

_NUM_STRENGTHS = 12
# The weakest penalty as a share of the strongest, which leaves no edge.
_WEAKEST = 0.01
_LEAST_STRONGEST = 1e-3
_NUM_FOLDS = 3
_MAX_ITERATIONS = 200


class SparsePrecision(NamedTuple):
    """K (d, d), exactly symmetric, and the penalty that led to it."""

    precision: Tensor
    penalty: float | None


def graphical_lasso(covariance: Tensor, strength: float) -> SparsePrecision:
    """Return K by the graphical lasso on the correlations of a covariance (d, d)."""
    scale = covariance.diagonal().sqrt()
    correlation = covariance / torch.outer(scale, scale)
    with warnings.catch_warnings():
        # Its dual gap is a tolerance far below the sampling error here; K is regular either way.
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, precision = sklearn_covariance.graphical_lasso(
            correlation.numpy(), alpha=strength, max_iter=_MAX_ITERATIONS
        )
    inverse = 1 / scale
    symmetric = torch.from_numpy(_symmetric(precision)) * torch.outer(inverse, inverse)
    return SparsePrecision(symmetric, strength)


def choose_by_ebic(
    em: GaussianFit, X: FloatArray, gamma: float, progress: Progress
) -> SparsePrecision:
    """Return the K of least extended Bayesian information criterion along the path.

    -2 log likelihood + E log n + 4 E gamma log d, with E edges and n rows.
    """
    num_rows, d = X.shape
    best, least = None, math.inf
    path = _strengths(em.covariance)
    price = math.log(num_rows) + 4 * gamma * math.log(d)

    def judged(strength: float) -> Tensor:
        """Return the criterion and K, (1 + d²,)."""
        precision = graphical_lasso(em.covariance, strength).precision
        num_edges = int((precision.triu(1) != 0).sum())
        log_likelihood = num_rows * observed_log_likelihood(X, em.mean, precision)
        criterion = -2 * log_likelihood + num_edges * price
        return torch.cat([precision.new_tensor([criterion]), precision.flatten()])

    for i, strength in enumerate(path):
        criterion, *_ = candidate = progress.journal.value(partial(judged, strength))
        if criterion < least:
            best, least = SparsePrecision(candidate[1:].reshape(d, d), strength), criterion
        progress.report((i + 1) / len(path), i + 1, None)
    assert best is not None
    return best


def choose_by_cross_validation(
    em: GaussianFit,
    X: FloatArray,
    rng: np.random.Generator,
    max_iterations: int,
    tolerance: float,
    progress: Progress,
) -> SparsePrecision:
    """Return K at the penalty of best observed-data likelihood on held-out rows, of three folds."""
    path = _strengths(em.covariance)
    scores = np.zeros(len(path))
    folds = np.array_split(rng.permutation(len(X)), _NUM_FOLDS)
    for i, fold in enumerate(folds):
        training = np.delete(X, fold, axis=0)
        usable = ~np.isnan(training).all(axis=0)
        if not usable.all():
            raise ValueError(
                "`penalty='cv'` needs every column observed in each two thirds of the rows"
            )
        part = fit_gaussian(
            training,
            max_iterations=max_iterations,
            tolerance=tolerance,
            progress=progress,
            span=(i / _NUM_FOLDS, (i + 0.5) / _NUM_FOLDS),
        )
        if part.status is FitStatus.CANCELLED:
            raise FitCancelledError
        progress.enter_part((i + 0.5) / _NUM_FOLDS, (i + 1) / _NUM_FOLDS)
        for j, strength in enumerate(path):
            scores[j] += progress.journal.value(partial(_held_out, X[fold], part, strength))
            progress.report((j + 1) / len(path), i + 1, None)
    return graphical_lasso(em.covariance, path[int(np.argmax(scores))])


def _held_out(X: FloatArray, part: GaussianFit, strength: float) -> Tensor:
    """Return the log likelihood (), nats a row, of rows that `part` has not seen."""
    precision = graphical_lasso(part.covariance, strength).precision
    return precision.new_tensor(observed_log_likelihood(X, part.mean, precision))


def _strengths(covariance: Tensor) -> list[float]:
    """Return penalties from the least that leaves no edge down, evenly on a log scale."""
    root = covariance.diagonal().rsqrt()
    correlation = covariance * torch.outer(root, root)
    strongest = float((correlation - torch.diag(correlation.diagonal())).abs().max())
    strongest = max(strongest, _LEAST_STRONGEST)  # columns may be uncorrelated to the bit
    return [float(s) for s in np.geomspace(strongest, _WEAKEST * strongest, _NUM_STRENGTHS)]


def _symmetric(matrix: FloatArray) -> FloatArray:
    """Return its symmetric part; an entry is zero if either of the two is, by rounding."""
    zero = (matrix == 0) | (matrix.T == 0)
    return np.where(zero, 0.0, 0.5 * (matrix + matrix.T))
