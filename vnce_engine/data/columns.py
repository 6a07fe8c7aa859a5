"""What the columns of a table must be like: what does not do is refused by name."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnce_engine.runtime.checks import listed

FloatArray = NDArray[np.float64]

# Observed cells that a column needs: with fewer, some pairs rest on a handful of rows, in which one
# looks like a function of the other.
_LEAST_CELLS = 10
_ROWS_A_CELL = 50
# Squares of values must be numbers, and so must precisions, their inverses.
_LARGEST = 1e150


def refuse_unusable_values(
    X: FloatArray, names: Sequence[str], estimator: str, *, may_be_negative: bool
) -> None:
    """Raise `ValueError` naming the columns with infinite values, or negative ones if forbidden."""
    _refuse(np.isinf(X).any(axis=0), names, "Infinite values in data passed to", estimator)
    if not may_be_negative:
        _refuse((X < 0).any(axis=0), names, "Negative values in data passed to", estimator)


def refuse_unusable_columns(
    X: FloatArray, names: Sequence[str], estimator: str, *, may_be_negative: bool
) -> None:
    """Raise `ValueError` also naming the columns without two different observed values."""
    refuse_unusable_values(X, names, estimator, may_be_negative=may_be_negative)
    observed = ~np.isnan(X)
    _refuse(~observed.any(axis=0), names, "No observed value in data passed to", estimator)
    lowest = np.where(observed, X, np.inf).min(axis=0)
    highest = np.where(observed, X, -np.inf).max(axis=0)
    _refuse(lowest == highest, names, "Constant column in data passed to", estimator)
    size = np.maximum(np.abs(lowest), np.abs(highest))
    extreme = (size > _LARGEST) | (size < 1 / _LARGEST)
    _refuse(extreme, names, f"Largest value beyond {_LARGEST:g} or its inverse in", estimator)


def least_observed(num_rows: int) -> int:
    """Return how many observed cells a column needs, of so many rows with something observed.

    Never more than half of them, so that small tables with missing cells pass.
    """
    return min(max(_LEAST_CELLS, math.ceil(num_rows / _ROWS_A_CELL)), math.ceil(num_rows / 2))


def refuse_rare_columns(
    X: FloatArray, names: Sequence[str], estimator: str, min_observed: int | None
) -> None:
    """Raise `ValueError` naming the columns with fewer observed cells, and how many they have.

    `min_observed` is None for `least_observed`.
    """
    observed = ~np.isnan(X)
    num_rows = int(observed.any(axis=1).sum())
    least = least_observed(num_rows) if min_observed is None else min_observed
    counts = observed.sum(axis=0)
    if (counts < least).any():
        columns = [f"{names[int(j)]} ({counts[j]})" for j in np.flatnonzero(counts < least)]
        raise ValueError(
            f"Fewer than {least} of {num_rows} cells are observed in data passed to X in "
            f"{estimator}: {listed(columns)}. Leave such columns out, or set `min_observed`."
        )


def refuse_zeros(X: FloatArray, names: Sequence[str]) -> None:
    """Raise `ValueError` naming the columns with observed zeros, which the log-normal forbids."""
    counts = (X == 0).sum(axis=0)
    if counts.any():
        columns = [f"{names[int(j)]} ({counts[j]})" for j in np.flatnonzero(counts)]
        raise ValueError(
            "`preset='paper'` needs observed values above 0, but there are zeros in "
            f"{listed(columns)}; the default preset allows them"
        )


def _refuse(bad: ArrayLike, names: Sequence[str], rule: str, estimator: str) -> None:
    if np.any(bad):
        columns = [names[int(j)] for j in np.flatnonzero(bad)]
        raise ValueError(f"{rule} X in {estimator}: {listed(columns)}")
