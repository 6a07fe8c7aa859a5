"""By how much models differ on held-out rows, and whether a path of them goes down."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, from_numpy, isfinite, quantile

from vnce_engine.data.clusters import Codes, error_of_mean

# Share of rows at either end whose gains are winsorised, set to the nearest of the others.
WINSORISED_SHARE = 0.05


@dataclass(frozen=True)
class Standing:
    """What held-out rows say of one of several models, in nats a row, in the table's units.

    NaN where it has no densities. Standard errors are over rows, or clusters of them, the fits that
    judge them held: a model that follows its table closely would differ more from one table to the
    next.
    """

    name: str
    log_density: float
    """Mean log density of held-out rows' observed cells."""
    standard_error: float
    behind: float
    """By how much it is less than the best model's, which has 0."""
    behind_error: float
    """Standard error of that, the rows of both models paired."""


def standings(
    log_densities: Mapping[str, NDArray[np.float64]], clusters: Codes | None = None
) -> list[Standing]:
    """Return the models, the best first, of the log densities (n,) of the same rows by each.

    `clusters` (n,) has the cluster of each row where rows are dependent.
    Those of a model that has none are NaN; such models come last.
    """
    means = {name: float(values.mean()) for name, values in log_densities.items()}
    ranked = sorted(means, key=lambda name: (np.isnan(means[name]), -means[name]))
    best = ranked[0]

    def error(differences: NDArray[np.float64]) -> float:
        labels = None if clusters is None else from_numpy(clusters)
        return mean_and_error(from_numpy(differences), labels)[1]

    return [
        Standing(
            name,
            log_density=means[name],
            standard_error=error(log_densities[name]),
            # Of means, as rounding would else put equal models before each other.
            behind=means[best] - means[name],
            behind_error=error(log_densities[best] - log_densities[name]),
        )
        for name in ranked
    ]


def mean_and_error(differences: Tensor, clusters: Tensor | None = None) -> tuple[float, float]:
    """Return the mean of row-wise differences (n,), and its standard error.

    `clusters`, int64 (n,), has the cluster of each row where they are dependent. An infinite mean,
    where only one of two models has a finite objective, is certain.
    """
    mean = float(differences.mean())
    return mean, 0.0 if math.isinf(mean) else error_of_mean(differences, clusters)


def winsorised_mean(differences: Tensor, clusters: Tensor | None = None) -> tuple[float, float]:
    """Return the mean over rows (n,), the outer ones winsorised, and its standard error.

    Winsorised rows say less than as many others: the standard deviation of all, over the root of
    their number, falls short of the error. Source: Dixon and Tukey (1968), "Approximate behavior of
    the distribution of Winsorized t", Technometrics 10.
    """
    levels = differences.new_tensor([WINSORISED_SHARE, 1 - WINSORISED_SHARE])
    low, high = quantile(differences, levels)
    if not bool(isfinite(low + high)):
        return mean_and_error(differences, clusters)
    mean, error = mean_and_error(differences.clamp(low, high), clusters)
    return mean, error / (1 - 2 * WINSORISED_SHARE)


def has_fallen(scores: Sequence[float], num_falls: int) -> bool:
    """Return whether the last scores of a path fell, so many times one after the other."""
    recent = scores[-num_falls - 1 :]
    return len(recent) > num_falls and all(later < score for score, later in pairwise(recent))
