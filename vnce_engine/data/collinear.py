"""Columns that are, or nearly are, linear functions of other columns."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from vnce_engine.data.observations import PART_ROWS

FloatArray = NDArray[np.float64]

# From this |correlation| on, two columns are one; 1 - r² is then what another leaves of a column.
_SAME = 0.9999
_LEFT = 1 - _SAME**2
# Rows that a correlation needs to be told from chance.
_MIN_ROWS = 10
# Share of its mean square that a column's variance in common rows has at least: what is left after
# the subtraction has six digits. Of less, as where it is constant, it is rounding.
_LEAST_VARIANCE = 1e-10
# Smallest weight, both columns in standard deviations, that makes a column part of a combination.
_MIN_WEIGHT = 0.01


class Combination(NamedTuple):
    """A column that others make up, where all columns are observed."""

    column: int
    parts: list[int]


def collinear_pairs(X: FloatArray) -> list[tuple[int, int]]:
    """Return pairs of columns of X (n, d) with |correlation| above .9999, where both are observed.

    Of at least ten such rows, in which both vary.
    """
    standard = _Standard(X, slice(None))
    width = X.shape[1]
    rows, first, square, product = np.zeros((4, width, width))
    for cells, observed in standard.parts():
        indicator = observed.astype(np.float64)
        rows += indicator.T @ indicator
        first += cells.T @ indicator
        square += (cells**2).T @ indicator
        product += cells.T @ cells
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = first / rows
        variance = square / rows - mean**2
        spread = np.sqrt(np.maximum(variance, 0))
        correlation = (product / rows - mean * mean.T) / (spread * spread.T)
        varies = variance > _LEAST_VARIANCE * square / rows
    same = (np.abs(correlation) > _SAME) & (rows >= _MIN_ROWS) & varies & varies.T
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(same, k=1))]


def combinations(X: FloatArray) -> list[Combination]:
    """Return columns of X (n, d) that two or more others make up but for 1e-4 of their variance.

    Judged by complete rows; empty where fewer than 2 d + 2 of them differ: of so few, columns might
    be combinations by chance.
    """
    is_complete = np.asarray(~np.isnan(X).any(axis=1))
    width = X.shape[1]
    if not _have_different(X, np.flatnonzero(is_complete), 2 * width + 2):
        return []
    correlation = np.zeros((width, width))
    for cells, _ in _Standard(X, is_complete).parts():
        correlation += cells.T @ cells
    return [found for found in _made_up(correlation / is_complete.sum()) if len(found.parts) > 1]


def _have_different(X: FloatArray, rows: NDArray[np.intp], least: int) -> bool:
    """Return whether at least so many of these rows of X differ from each other."""
    seen: set[bytes] = set()
    for row in rows:
        seen.add((X[row] + 0.0).tobytes())  # of -0 and 0, which are equal, one
        if len(seen) == least:
            return True
    return False


def _made_up(correlation: FloatArray) -> Iterator[Combination]:
    """Yield the columns that those before them make up, by a Cholesky factor without them."""
    width = len(correlation)
    factor = np.zeros((width, width))
    independent: list[int] = []
    for j in np.flatnonzero(correlation.diagonal() > 0):
        size = len(independent)
        root = factor[:size, :size]
        row = np.zeros(0)
        if size:
            row = solve_triangular(root, correlation[independent, j], lower=True)
        left = correlation[j, j] - float(row @ row)
        if left < _LEFT * correlation[j, j]:
            weights = solve_triangular(root, row, lower=True, trans="T")
            parts = [i for i, w in zip(independent, weights, strict=True) if abs(w) > _MIN_WEIGHT]
            yield Combination(int(j), parts)
            continue
        factor[size, :size] = row
        factor[size, size] = np.sqrt(left)
        independent.append(int(j))


class _Standard:
    """Rows of a table, each column less its mean and in units of its spread, 0 where missing."""

    def __init__(self, X: FloatArray, rows: NDArray[np.bool_] | slice) -> None:
        self._X = X
        self._rows = np.arange(len(X))[rows]
        total, square, count = np.zeros((3, X.shape[1]))
        for part in self._split():
            total += np.nansum(part, axis=0)
            count += (~np.isnan(part)).sum(axis=0)
        self._mean = total / np.maximum(count, 1)
        for part in self._split():
            square += np.nansum((part - self._mean) ** 2, axis=0)
        spread = np.sqrt(square / np.maximum(count, 1))
        self._spread = np.where(spread > 0, spread, 1.0)

    def parts(self) -> Iterator[tuple[FloatArray, NDArray[np.bool_]]]:
        """Yield so many rows at a time, and which of their cells are observed."""
        for part in self._split():
            observed = ~np.isnan(part)
            yield np.where(observed, (part - self._mean) / self._spread, 0.0), observed

    def _split(self) -> Iterator[FloatArray]:
        for start in range(0, len(self._rows), PART_ROWS):
            yield self._X[self._rows[start : start + PART_ROWS]]
