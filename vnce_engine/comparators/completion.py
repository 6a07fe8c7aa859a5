"""What a method for complete tables does with missing cells: fixed values, or Gibbs draws.

Gibbs imputation alternates: draw the missing cells under the present K and h, then fit to the
completed table; the estimate is the average over rounds (stochastic EM; Celeux and Diebolt, 1985).
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from vnce_engine.comparators.chains import CompletedTable
from vnce_engine.comparators.exponential import Parameters
from vnce_engine.comparators.filling import Imputation, fill
from vnce_engine.comparators.maximise import Optimum, Report
from vnce_engine.comparators.result import ComparatorFit, ScaledTable
from vnce_engine.data.observations import Observations
from vnce_engine.runtime.checkpoint import Saved
from vnce_engine.runtime.progress import FitCancelledError, Progress
from vnce_engine.runtime.reports import FitStatus

FloatArray = NDArray[np.float64]

# Fits to complete rows (d, n), starting at the given parameters, and may report its steps.
CompleteFit = Callable[[FloatArray, Parameters, Report | None], Optimum]

# Rounds before averages are taken, and as many at least that are averaged.
_BURN_IN = 10
_SWEEPS = 3


def fit_completed(
    table: ScaledTable,
    imputation: Imputation | None,
    fit: CompleteFit,
    *,
    max_rounds: int,
    tolerance: float,
    progress: Progress,
) -> ComparatorFit:
    """Return the estimate by `fit` of an incomplete table; `objective_path` has its maxima.

    Without an `imputation` missing cells are drawn from the model by Gibbs sweeps. Such a fit has
    converged when no column's mean imputed value, averaged over rounds, moves by more than
    `tolerance` root mean squares of the column in a round.
    """
    if imputation is None and np.isnan(table.X).any():
        return _fit_with_draws(table, fit, max_rounds, tolerance, progress)
    rows = table.X.T if imputation is None else filled(table.X, imputation).T
    start = Parameters.independent(np.ones(len(rows)))
    optimum = Optimum(start, math.nan, math.nan, is_converged=False)
    try:
        optimum = fit(np.ascontiguousarray(rows), start, progress.report)
        if optimum.is_cancelled:
            status = FitStatus.CANCELLED
        else:
            status = FitStatus.CONVERGED if optimum.is_converged else FitStatus.MAX_ITERATIONS
    except FitCancelledError:
        status = FitStatus.CANCELLED
    return ComparatorFit(
        theta=optimum.theta,
        status=status,
        objective_path=() if math.isnan(optimum.gradient_norm) else (optimum.value,),
        gradient_norm=optimum.gradient_norm,
    )


def filled(X: FloatArray, imputation: Imputation) -> FloatArray:
    """Return a filled table (n, d), or its complete rows; fixed values draw nothing."""
    complete = fill(Observations.from_array(X), imputation, torch.Generator())
    rows: FloatArray = complete.values.numpy()
    return rows


def _fit_with_draws(
    table: ScaledTable, fit: CompleteFit, max_rounds: int, tolerance: float, progress: Progress
) -> ComparatorFit:
    rounds = _Rounds(table)
    status = FitStatus.MAX_ITERATIONS
    try:
        while rounds.num_done < max_rounds and not rounds.has_settled(tolerance):
            rounds.end(progress.checkpoint.once(partial(rounds.do, fit)))
            progress.report(rounds.num_done / max_rounds, rounds.num_done, rounds.path[-1])
        # Settled imputations of a fit that has no optimum are no success.
        if rounds.has_settled(tolerance) and rounds.has_optimum:
            status = FitStatus.CONVERGED
    except FitCancelledError:
        status = FitStatus.CANCELLED
    return ComparatorFit(
        theta=rounds.estimate(),
        status=status,
        objective_path=tuple(rounds.path),
        gradient_norm=rounds.gradient_norm,
        num_draws=rounds.num_averaged,
        column_change=rounds.column_change(),
    )


class _Rounds:
    """The state between rounds: the completed table, the last fit, and sums for the averages."""

    def __init__(self, table: ScaledTable) -> None:
        d = table.X.shape[1]
        self.path: list[float] = []
        self.gradient_norm = math.nan
        self.has_optimum = False
        # Rounds of an interrupted fit leave their sweeps to those that follow.
        self._num_swept = 0
        self._data = CompletedTable(table.X, table.rng)
        self._theta = Parameters.independent(np.ones(d))
        self._late_sum = Parameters(np.zeros((d, d)), np.zeros(d))
        self._means: list[FloatArray] = []

    def do(self, fit: CompleteFit) -> Saved:
        """Draw the missing cells anew, fit to the completed table, and return what was found."""
        num_left = min(self.num_done - self._num_swept, _BURN_IN)
        self._num_swept = self.num_done + 1
        # Draws need a definite K; the fit itself does not.
        self._data.sweep(self._theta.damped(), (num_left + 1) * _SWEEPS)
        optimum = fit(self._data.state, self._theta, None)
        if optimum.is_cancelled:
            raise FitCancelledError  # the rounds before it are the estimate
        means = torch.from_numpy(self._data.imputed_means())
        judged = (optimum.value, optimum.gradient_norm, optimum.is_converged)
        return optimum.theta.to_tensors(), means, *judged

    def end(self, found: Saved) -> None:
        """Take what `do` returned."""
        theta, means, value, self.gradient_norm, self.has_optimum = found
        self._theta = Parameters.from_tensors(theta)
        self._means.append(means.numpy())
        self.path.append(value)
        if self.num_averaged:
            self._late_sum = Parameters(
                self._late_sum.precision + self._theta.precision,
                self._late_sum.linear + self._theta.linear,
            )

    @property
    def num_done(self) -> int:
        """The number of rounds."""
        return len(self.path)

    @property
    def num_averaged(self) -> int:
        """The number of rounds whose fits are averaged."""
        return max(self.num_done - _BURN_IN, 0)

    def column_change(self) -> FloatArray:
        """Return (d,) how far each column's mean imputed value, averaged, moved in the last round.

        NaN until there are enough rounds to tell.
        """
        late = np.array(self._means[_BURN_IN:])
        if len(late) <= _BURN_IN:
            return np.full(len(self._theta.linear), np.nan)
        change: FloatArray = np.abs(late.mean(axis=0) - late[:-1].mean(axis=0))
        return change

    def has_settled(self, tolerance: float) -> bool:
        """Return whether no column's averaged mean moves any more."""
        return bool((self.column_change() <= tolerance).all())

    def estimate(self) -> Parameters:
        """Return the average of the late rounds' fits, or the last fit if there are none."""
        if not self.num_averaged:
            return self._theta
        return Parameters(
            self._late_sum.precision / self.num_averaged, self._late_sum.linear / self.num_averaged
        )
