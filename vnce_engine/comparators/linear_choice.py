"""Whether a comparator estimates the linear term h, where it is left open: `linear="auto"`.

Without h the density is that of a random length times an independent direction: R² = xᵀKx has the
chi-square distribution with d degrees of freedom, whatever K. A column x_j = R u_j therefore has a
mean of at most E R / sd R, about √(2d), standard deviations; where one lies further from zero, h is
free without a fit. Otherwise both models are fitted to one half of the rows, and the other half
decides by the objective that is maximised, or by the pseudo-likelihood where that is a likelihood
without a value. Missing cells are drawn under the model that is judged, and only observed ones
count.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import gammaln
from torch import Tensor

from vnce_engine.comparators.chains import CompletedTable
from vnce_engine.comparators.exponential import Parameters
from vnce_engine.comparators.maximise import CompleteSample, maximise
from vnce_engine.comparators.result import ScaledTable
from vnce_engine.data.clusters import deal, renumbered
from vnce_engine.inference.result import LinearEvidence
from vnce_engine.penalties.boundedness import least_rows
from vnce_engine.penalties.penalty import Penalty, PenaltyKind, weakest_safe_strength
from vnce_engine.runtime.progress import FitCancelledError, Progress
from vnce_engine.selection.held_out_gains import WINSORISED_SHARE, winsorised_mean

FloatArray = NDArray[np.float64]

# Rows that are enough to decide.
_MOST_ROWS = 4_000
# Rounds of imputation before held-out rows are judged, and sweeps in each.
_ROUNDS, _SWEEPS = 8, 2
# Rows for each that are needed without a penalty. A penalty shrinks interactions, which h would
# make up for; only with fewer rows a trial has the fit's penalty, or a ridge.
_ROWS_PER_NEEDED_ROW = 3
# Standard errors of its mean by which h must gain. On average it loses √d / 2 where it is zero.
_STANDARD_ERRORS = 2.0
# Standard errors of a column's mean over standard deviation above what no model without h has.
_MARGIN = 3.0


class JudgedSample(CompleteSample, Protocol):
    """Complete rows under an objective that is a sum over cells."""

    def cell_values(self, augmented: Tensor) -> Tensor:
        """Return the objective of each cell, (d, n)."""


@dataclass(frozen=True)
class Trial:
    """What is tried: a table (n, d) at mean square 1, and how it is fitted."""

    X: FloatArray
    """NaN where missing"""
    filled: FloatArray
    """The same with what a fit fills in beforehand"""
    sample: Callable[[Tensor], JudgedSample]
    """Returns complete rows (d, n) under the objective."""
    penalty: Callable[[bool], Penalty]
    """Returns the penalty with h or without."""
    clusters: Tensor | None
    """int64 (n,): the cluster of each row; None where rows are independent."""


def is_too_far(X: FloatArray) -> NDArray[np.bool_]:
    """Return bool (d,): columns further from zero than any model without h has them."""
    mean, spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    counts = (~np.isnan(X)).sum(axis=0)
    too_far: NDArray[np.bool_] = mean > spread * largest_distance(X.shape[1]) * (
        1 + _MARGIN / np.sqrt(counts)
    )
    return too_far


def largest_distance(num_columns: int) -> float:
    """Return the mean over the standard deviation of a chi variable: no column's is larger."""
    d = num_columns
    mean = math.sqrt(2) * math.exp(gammaln(0.5 * (d + 1)) - gammaln(0.5 * d))
    return mean / math.sqrt(d - mean**2)


def choose_linear(
    trial: Trial, rng: np.random.Generator, progress: Progress
) -> tuple[bool, LinearEvidence | None]:
    """Return whether h is estimated, and the evidence where held-out rows decided.

    Raises `FitCancelledError` when the caller says so.
    """
    X = trial.X
    if is_too_far(X).any():
        return True, None
    training, others = _halves(trial, rng.permutation(len(X))[:_MOST_ROWS], rng)
    seed = int(rng.integers(2**63))
    values = []
    for position, has_linear in enumerate((False, True)):
        progress.enter_part(position / 2, (position + 1) / 2)
        # The same uniforms for both.
        judged = _Judged(
            trial, training, others, np.random.default_rng(seed), has_linear=has_linear
        )
        values.append(progress.checkpoint.once(partial(judged.held_out_values, progress)))
    clusters = None if trial.clusters is None else renumbered(trial.clusters[others])
    gain, error = winsorised_mean(values[1] - values[0], clusters)
    rule = (
        f"free if the gain, its outer {WINSORISED_SHARE:.0%} of rows on either side winsorised, "
        f"exceeds {_STANDARD_ERRORS:g} standard errors"
    )
    return gain > _STANDARD_ERRORS * error, LinearEvidence(gain, error, rule)


def _halves(
    trial: Trial, order: NDArray[np.intp], rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows that are fitted, and those that judge, no cluster among both."""
    if trial.clusters is None:
        half = len(order) // 2
        return order[:half], order[half:]
    own = renumbered(trial.clusters[order]).numpy()
    training, others = deal(len(order), own, 2, rng)
    return order[training], order[others]


class _Judged:
    """A model fitted to some rows, and judged on others."""

    def __init__(
        self,
        trial: Trial,
        training: NDArray[np.intp],
        others: NDArray[np.intp],
        rng: np.random.Generator,
        *,
        has_linear: bool,
    ) -> None:
        self._sample = trial.sample
        self._num_training = len(training)
        order = np.concatenate([training, others])
        self._observed = torch.from_numpy(~np.isnan(trial.X[order].T))
        rows = trial.filled[order]
        self._data = CompletedTable(rows, rng)
        self._table = ScaledTable(
            rows, has_linear, self._penalty(trial.penalty(has_linear), has_linear), rng
        )
        self._theta = Parameters.independent(np.ones(rows.shape[1]))

    def _penalty(self, penalty: Penalty, has_linear: bool) -> Penalty:
        """Return the penalty for the training rows: none where they can do without."""
        penalty = replace(penalty, num_rows=self._num_training)
        needed = least_rows(len(penalty.inverse_k0), has_mean=has_linear)
        if self._num_training >= _ROWS_PER_NEEDED_ROW * needed:
            return replace(penalty, strength=0.0)
        if penalty.strength:
            return penalty
        return replace(penalty, strength=weakest_safe_strength(), kind=PenaltyKind.RIDGE)

    def held_out_values(self, progress: Progress) -> Tensor:
        """Return the objective (number of other rows,) of the observed cells of each other row."""
        num_rounds = 1 if self._data.is_complete else _ROUNDS
        for number in range(num_rounds):
            if number:
                self._data.sweep(self._theta.damped(), _SWEEPS)
            self._fit(progress)
            progress.report((number + 1) / num_rounds, number + 1, None)
        rows = torch.from_numpy(self._data.state[:, self._num_training :])
        cells = self._sample(rows).cell_values(self._theta.model().augmented())
        counted = torch.where(self._observed[:, self._num_training :], cells, 0.0)
        return counted.sum(dim=0)

    def _fit(self, progress: Progress) -> None:
        rows = np.ascontiguousarray(self._data.state[:, : self._num_training])
        sample = self._sample(torch.from_numpy(rows))
        optimum = maximise(sample, self._theta, self._table, progress, None)
        if optimum.is_cancelled:
            raise FitCancelledError
        self._theta = optimum.theta
