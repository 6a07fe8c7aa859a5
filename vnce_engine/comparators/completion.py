"""What a method for complete tables does with missing cells: fixed values, or Gibbs draws.

Gibbs imputation alternates: draw the missing cells under the present K and h, then fit to the
completed table; the estimate is the average over rounds (stochastic EM; Celeux and Diebolt, 1985).
"""

import math
from collections.abc import Callable
from enum import StrEnum

import numpy as np
import torch
from numpy.typing import NDArray

from vnce_engine.comparators.bounded import Minimum
from vnce_engine.comparators.chains import CompletedTable
from vnce_engine.comparators.exponential import Parameters
from vnce_engine.comparators.result import ComparatorFit, ScaledTable
from vnce_engine.filling import Imputation, fill
from vnce_engine.observations import Observations
from vnce_engine.progress import FitCancelledError, Progress
from vnce_engine.result import FitStatus

FloatArray = NDArray[np.float64]

# Fits to complete rows (d, n), starting at the given parameters.
CompleteFit = Callable[[FloatArray, Parameters], Minimum]

# Rounds before averages are taken, and as many at least that are averaged.
_BURN_IN = 10
_SWEEPS = 3


class Completion(StrEnum):
    """What is done with missing cells."""

    GIBBS = "gibbs"
    MEAN = "mean"
    ZERO = "zero"
    DROP = "drop"


def fit_completed(
    table: ScaledTable,
    completion: Completion,
    fit: CompleteFit,
    *,
    max_rounds: int,
    tolerance: float,
    progress: Progress,
) -> ComparatorFit:
    """Return the estimate by `fit` of a table with holes; `objective_path` has minus its minima.

    With Gibbs draws it converges when no column's mean imputed value, averaged over rounds, moves
    by more than `tolerance` root mean squares of the column in a round.
    """
    if completion is Completion.GIBBS and np.isnan(table.X).any():
        return _fit_with_draws(table, fit, max_rounds, tolerance, progress)
    rows = table.X.T if completion is Completion.GIBBS else _filled(table.X, completion).T
    status = FitStatus.CONVERGED
    minimum = fit(np.ascontiguousarray(rows), Parameters.independent(np.ones(len(rows))))
    if not minimum.is_converged:
        status = FitStatus.MAX_ITERATIONS
    try:
        progress.report(1.0, 1, -minimum.value)
    except FitCancelledError:
        status = FitStatus.CANCELLED
    return _ended(minimum.theta, status, [minimum])


def _filled(X: FloatArray, completion: Completion) -> FloatArray:
    # Fixed fills draw nothing.
    filled = fill(Observations.from_array(X), Imputation(completion), torch.Generator())
    rows: FloatArray = filled.values.numpy()
    if (rows.max(axis=0) == rows.min(axis=0)).any():
        raise ValueError("`imputation='drop'` leaves a constant column; keep more rows")
    return rows


def _fit_with_draws(
    table: ScaledTable, fit: CompleteFit, max_rounds: int, tolerance: float, progress: Progress
) -> ComparatorFit:
    data = CompletedTable(table.X, table.rng)
    theta = Parameters.independent(np.ones(table.X.shape[1]))
    minima: list[Minimum] = []
    means: list[FloatArray] = []
    change = np.full(table.X.shape[1], np.nan)
    status = FitStatus.MAX_ITERATIONS
    try:
        for round_number in range(1, max_rounds + 1):
            # Draws need a definite K; the fit itself does not.
            data.sweep(theta.damped(), _SWEEPS)
            minima.append(fit(data.state, theta))
            theta = minima[-1].theta
            means.append(data.imputed_means())
            progress.report(round_number / max_rounds, round_number, -minima[-1].value)
            if round_number > 2 * _BURN_IN:
                late = np.array(means[_BURN_IN:])
                change = np.abs(late.mean(axis=0) - late[:-1].mean(axis=0))
                if change.max() <= tolerance:
                    # Settled imputations of a fit that has no minimum are no success.
                    if minima[-1].is_converged:
                        status = FitStatus.CONVERGED
                    break
    except FitCancelledError:
        status = FitStatus.CANCELLED
    late_fits = [minimum.theta for minimum in minima[_BURN_IN:]]
    theta = Parameters.mean(late_fits) if late_fits else theta
    return _ended(theta, status, minima, change, len(late_fits))


def _ended(
    theta: Parameters,
    status: FitStatus,
    minima: list[Minimum],
    change: FloatArray | None = None,
    num_draws: int = 0,
) -> ComparatorFit:
    return ComparatorFit(
        precision=theta.precision,
        linear=theta.linear,
        status=status,
        objective_path=tuple(-minimum.value for minimum in minima),
        gradient_norm=minima[-1].gradient_norm if minima else math.nan,
        num_draws=num_draws,
        column_change=change,
    )
