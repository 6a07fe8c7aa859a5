"""Gibbs chains that stand for the missing cells of a table, and chains of the model itself."""

from copy import copy

import numpy as np
import torch
from numpy.typing import NDArray

from vnce_engine.comparators.exponential import Moments, Parameters
from vnce_engine.distributions.gibbs import standard_draws, sweep
from vnce_engine.distributions.truncated_normal import fast_mean
from vnce_engine.inference.mean_field import CEILING_FACTOR

FloatArray = NDArray[np.float64]


class CompletedTable:
    """A table whose missing cells are the state of a Gibbs chain each row, persistent.

    Rows are kept as columns, (d, n), so that a coordinate lies together. A cell goes no higher than
    twice its column's largest observed value, which a proper conditional hardly ever does.
    """

    def __init__(self, X: FloatArray, rng: np.random.Generator) -> None:
        """Start from X (n, d), NaN where missing; missing cells begin at draws of their column."""
        self.state = np.ascontiguousarray(X.T)
        self._is_missing = np.isnan(self.state)
        self._missing = [np.flatnonzero(gaps) for gaps in self._is_missing]
        self._ceiling = CEILING_FACTOR * np.nanmax(self.state, axis=1)
        self._rng = rng
        for column, rows in zip(self.state, self._missing, strict=True):
            column[rows] = rng.choice(column[~np.isnan(column)], size=len(rows))

    def part(self, rows: NDArray[np.intp]) -> "CompletedTable":
        """Return chains of some rows (b,), at copies of the present states."""
        part = copy(self)
        part.state = self.state[:, rows]
        part._is_missing = self._is_missing[:, rows]
        part._missing = [np.flatnonzero(gaps) for gaps in part._is_missing]
        return part

    def put(self, rows: NDArray[np.intp], part: "CompletedTable") -> None:
        """Take back the states of a part of the rows."""
        self.state[:, rows] = part.state

    @property
    def is_complete(self) -> bool:
        """Whether no cell is missing."""
        return not any(len(rows) for rows in self._missing)

    def sweep(self, parameters: Parameters, num_sweeps: int = 1) -> None:
        """Redraw every missing cell, `num_sweeps` times, given all other cells of its row."""
        sigma = 1 / np.sqrt(np.diagonal(parameters.precision))
        # Of the others' values, on a cell in units of its own standard deviation.
        weights = -parameters.precision * sigma[:, np.newaxis]
        np.fill_diagonal(weights, 0.0)
        shifts = parameters.linear * sigma
        for _ in range(num_sweeps):
            for i, rows in enumerate(self._missing):
                if not len(rows):
                    continue
                pull = (weights[i] @ self.state)[rows] + shifts[i]
                cells = standard_draws(pull, self._rng.random(len(rows)))
                self.state[i, rows] = np.minimum(sigma[i] * cells, self._ceiling[i])

    def moments(self, centre: FloatArray | float = 0.0) -> Moments:
        """Return the statistics of the completed rows, measured from a centre (d, 1)."""
        return Moments.of(self.state - centre)

    def imputed_means(self) -> FloatArray:
        """Return the mean (d,) of each column's missing cells, 0 where it has none."""
        return np.array(
            [
                column[rows].mean() if len(rows) else 0.0
                for column, rows in zip(self.state, self._missing, strict=True)
            ]
        )


class ModelChains:
    """Independent chains of the model, persistent while its parameters move."""

    def __init__(self, state: FloatArray, rng: np.random.Generator) -> None:
        """Start from `state` (d, number of chains), which is overwritten."""
        self.state = state
        self._rng = rng

    def sweep(self, parameters: Parameters, num_sweeps: int = 1) -> None:
        """Redraw every coordinate of every chain `num_sweeps` times."""
        sweep(self.state, parameters.precision, parameters.linear, self._rng, num_sweeps)

    def moments(self) -> Moments:
        """Return the statistics of the chains' present states."""
        return Moments.of(self.state)

    def expected_moments(self, parameters: Parameters, centre: FloatArray | float = 0.0) -> Moments:
        """Return the statistics with each coordinate in turn averaged out, given a chain's others.

        Of states measured from a centre (d, 1). They have the expectation of `moments` under the
        model, and a fraction of its variance (Rao and Blackwell's theorem). Source: Gelfand and
        Smith (1990), "Sampling-based approaches to calculating marginal densities", J. Am. Stat.
        Assoc. 85.
        """
        state, precision = self.state, parameters.precision
        variance = 1 / np.diagonal(precision)[:, np.newaxis]
        mu = state + variance * (parameters.linear[:, np.newaxis] - precision @ state)
        means = fast_mean(torch.from_numpy(mu), torch.from_numpy(np.sqrt(variance))).numpy()
        deviations = means - centre
        cross = deviations @ (state - centre).T / state.shape[1]
        second = 0.5 * (cross + cross.T)
        # E x² = variance + mu E x, and no digits are lost far from zero, where E x is mu.
        squares = variance + (mu - centre) * deviations - centre * (means - mu)
        np.fill_diagonal(second, squares.mean(axis=1))
        return Moments(second, deviations.mean(axis=1))
