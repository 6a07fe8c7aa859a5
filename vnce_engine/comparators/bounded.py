"""Minimising over K and h with positive K_ii and a penalty, by bounded L-BFGS."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from vnce_engine.comparators.exponential import Coordinates, Parameters
from vnce_engine.comparators.result import ScaledTable
from vnce_engine.prepared import SMALLEST_DIAGONAL
from vnce_engine.progress import Progress

FloatArray = NDArray[np.float64]

# Value and gradient (under tr(A B)) of what is minimised.
Objective = Callable[[Parameters], tuple[float, Parameters]]

_MAX_ITERATIONS = 500
_GRADIENT_TOLERANCE = 1e-5
_VALUE_TOLERANCE = 1e-11
# Norm of the gradient, columns scaled, up to which a search that has ended is at a minimum.
_FLAT = 1e-2


@dataclass(frozen=True)
class Minimum:
    """Where a search ended."""

    theta: Parameters
    value: float
    gradient_norm: float
    """Euclidean norm of the gradient, without its parts that push against a bound."""
    is_converged: bool


def minimise(objective: Objective, start: Parameters, table: ScaledTable) -> Minimum:
    """Return the minimum of an objective plus the table's penalty, K_ii at least a twentieth of k0.

    An L1 penalty is smooth in the positive and negative parts of an interaction, each bounded by
    zero, so that the same search finds exact zeros.
    """
    coordinates = Coordinates(len(start.linear), free_linear=table.free_linear)
    parts = _Parts(coordinates, table)
    # In K and h themselves the valley would be as narrow as a column lies far from zero.
    centre = np.nanmean(table.X, axis=0) if table.free_linear else np.zeros(table.X.shape[1])

    def evaluate(searched: FloatArray) -> tuple[float, FloatArray]:
        vector = searched * parts.units
        centred = coordinates.read(parts.join(vector))
        value, slope = objective(centred.seen_from(-centre))
        outer = np.outer(slope.linear, centre)
        by_centred = Parameters(slope.precision + 0.5 * (outer + outer.T), slope.linear)
        value, gradient = parts.penalised(vector, centred, value, by_centred)
        return value, gradient * parts.units

    lower = parts.lower / parts.units
    result = minimize(
        evaluate,
        parts.split(coordinates.write(start.seen_from(centre))) / parts.units,
        jac=True,
        method="L-BFGS-B",
        bounds=[(None if np.isinf(low) else low, None) for low in lower],
        options={
            "maxiter": _MAX_ITERATIONS,
            "maxfun": 2 * _MAX_ITERATIONS,
            "maxcor": 20,
            "gtol": _GRADIENT_TOLERANCE,
            "ftol": _VALUE_TOLERANCE,
        },
    )
    at_bound = (result.x <= lower) & (result.jac > 0)
    gradient_norm = float(np.linalg.norm(np.where(at_bound, 0.0, result.jac)))
    # An objective that falls for ever also ends by its own tolerance on the value.
    is_flat = gradient_norm <= _FLAT
    return Minimum(
        coordinates.read(parts.join(result.x * parts.units)).seen_from(-centre),
        float(result.fun),
        gradient_norm,
        bool(result.success) and bool(np.isfinite(result.fun)) and is_flat,
    )


def journalled(objective: Objective, work: int, progress: Progress) -> Objective:
    """Return the objective with every evaluation, `work` multiplications, a value of the journal.

    For objectives over all rows, so many evaluations of which may take minutes.
    """

    def kept(theta: Parameters) -> tuple[float, Parameters]:
        def evaluate() -> Tensor:
            progress.spend(work)
            value, slope = objective(theta)
            parts = ([value], slope.precision.ravel(), slope.linear)
            return torch.from_numpy(np.concatenate(parts))

        evaluated = progress.journal.value(evaluate).numpy()
        d = len(theta.linear)
        value, matrix, linear = np.split(evaluated, [1, 1 + d * d])
        return float(value[0]), Parameters(matrix.reshape(d, d), linear)

    return kept


class _Parts:
    """The vector that is searched: coordinates, pairs in two parts where the penalty has a kink."""

    def __init__(self, coordinates: Coordinates, table: ScaledTable) -> None:
        self._coordinates, self._penalty = coordinates, table.penalty
        self._has_kink = table.penalty.has_kink
        d = len(table.penalty.inverse_k0)
        is_diagonal = coordinates.is_diagonal
        lower = np.full(coordinates.size, -np.inf)
        lower[is_diagonal] = SMALLEST_DIAGONAL / table.penalty.inverse_k0.numpy()
        pairs = np.zeros(coordinates.size, bool)
        pairs[: d * (d + 1) // 2] = ~is_diagonal[: d * (d + 1) // 2]
        self._pairs = np.flatnonzero(pairs)
        if self._has_kink:
            lower[self._pairs] = 0.0
            lower = np.concatenate([lower, np.zeros(len(self._pairs))])
        self.lower = lower
        spread = np.sqrt(table.penalty.inverse_k0.numpy())
        units = coordinates.write(Parameters(1 / np.outer(spread, spread), 1 / spread))
        # Of the searched vector: those of columns of variance, or mean square, 1.
        self.units = np.concatenate([units, units[self._pairs]]) if self._has_kink else units

    def split(self, vector: FloatArray) -> FloatArray:
        """Return the searched vector of coordinates (size,)."""
        if not self._has_kink:
            return vector
        positive = vector.copy()
        positive[self._pairs] = np.maximum(vector[self._pairs], 0)
        return np.concatenate([positive, np.maximum(-vector[self._pairs], 0)])

    def join(self, searched: FloatArray) -> FloatArray:
        """Return the coordinates (size,) of the searched vector."""
        if not self._has_kink:
            return searched
        vector = searched[: self._coordinates.size].copy()
        vector[self._pairs] -= searched[self._coordinates.size :]
        return vector

    def penalised(
        self, searched: FloatArray, theta: Parameters, value: float, slope: Parameters
    ) -> tuple[float, FloatArray]:
        """Return value and gradient by the searched vector, the penalty added."""
        precision = torch.from_numpy(theta.precision)
        value += float(self._penalty.value(precision))
        smooth = slope.precision + self._smooth_gradient(precision)
        gradient = self._coordinates.derivative(Parameters(smooth, slope.linear))
        if not self._has_kink:
            return value, gradient
        weight = self._kink_weight()
        # Where both parts are above zero their sum counts, which |K_ij| falls short of.
        overlap = np.minimum(searched[self._pairs], searched[self._coordinates.size :])
        value += float(weight @ (2 * overlap))
        down = -gradient[self._pairs] + weight
        gradient[self._pairs] += weight
        return value, np.concatenate([gradient, down])

    def _smooth_gradient(self, precision: torch.Tensor) -> FloatArray:
        """Return the penalty's gradient (d, d), without an L1 penalty's part off the diagonal."""
        gradient: FloatArray = self._penalty.gradient(precision).numpy()
        return np.diag(np.diagonal(gradient)) if self._has_kink else gradient

    def _kink_weight(self) -> FloatArray:
        """Return the weight of each |K_ij|, pair by pair."""
        ones = torch.ones_like(self._penalty.inverse_k0)
        everywhere = torch.outer(ones, ones)
        slope = self._penalty.gradient(everywhere).numpy()
        weights = self._coordinates.derivative(Parameters(slope, np.zeros(len(slope))))
        pairs: FloatArray = weights[self._pairs]
        return pairs
