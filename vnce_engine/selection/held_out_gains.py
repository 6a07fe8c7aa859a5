"""By how much models differ on held-out rows, and whether a path of them goes down."""

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, isfinite, quantile

# Share of rows at either end whose gains are winsorised, set to the nearest of the others.
WINSORISED_SHARE = 0.05


def mean_and_error(differences: Tensor) -> tuple[float, float]:
    """Return the mean of row-wise differences (n,), and its standard error.

    An infinite mean, where only one of two models has a finite objective, is certain.
    """
    mean = float(differences.mean())
    error = float(differences.std() / math.sqrt(len(differences)))
    return mean, 0.0 if math.isinf(mean) else error


def winsorised_mean(differences: Tensor) -> tuple[float, float]:
    """Return the mean over rows (n,), the outer ones winsorised, and its standard error.

    Winsorised rows say less than as many others: the standard deviation of all, over the root of
    their number, falls short of the error. Source: Dixon and Tukey (1968), "Approximate behavior of
    the distribution of Winsorized t", Technometrics 10.
    """
    levels = differences.new_tensor([WINSORISED_SHARE, 1 - WINSORISED_SHARE])
    low, high = quantile(differences, levels)
    if not bool(isfinite(low + high)):
        return mean_and_error(differences)
    mean, error = mean_and_error(differences.clamp(low, high))
    return mean, error / (1 - 2 * WINSORISED_SHARE)


def has_fallen(scores: Sequence[float], num_falls: int) -> bool:
    """Return whether the last scores of a path fell, so many times one after the other."""
    recent = scores[-num_falls - 1 :]
    return len(recent) > num_falls and all(later < score for score, later in pairwise(recent))
