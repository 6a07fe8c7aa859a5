"""The truncated Gaussian as an exponential family: its parameters and sufficient statistics.

log phi = -½ xᵀKx + hᵀx is linear in (K, h), whose statistics are -½ xxᵀ and x.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.distributions.definiteness import smallest_scaled_eigenvalue
from vnce_engine.distributions.quadratic import QuadraticModel

FloatArray = NDArray[np.float64]

# Smallest eigenvalue, K scaled to a diagonal of 1, at which Gibbs chains still mix.
_SMALLEST_EIGENVALUE = 1e-3
# Factor on all interactions, again and again, until K is definite.
_DAMPING = 0.9


@dataclass(frozen=True)
class Parameters:
    """K (d, d), symmetric, and h (d,); or a step or a gradient of them."""

    precision: FloatArray
    linear: FloatArray

    @classmethod
    def independent(cls, second: FloatArray) -> "Parameters":
        """Return half-normal columns of mean square `second` (d,)."""
        return cls(np.diag(1 / second), np.zeros(len(second)))

    @classmethod
    def mean(cls, parameters: "Sequence[Parameters]") -> "Parameters":
        """Return the average of several."""
        return cls(
            np.mean([theta.precision for theta in parameters], axis=0),
            np.mean([theta.linear for theta in parameters], axis=0),
        )

    @classmethod
    def of(cls, model: QuadraticModel) -> "Parameters":
        """Return a model's."""
        return cls(model.precision.numpy(), model.linear.numpy())

    def model(self, log_partition: float = 0.0) -> QuadraticModel:
        """Return the model with these parameters and that c."""
        precision, linear = self.to_tensors()
        return QuadraticModel(precision, linear, linear.new_tensor(log_partition))

    @classmethod
    def from_tensors(cls, tensors: tuple[Tensor, Tensor]) -> "Parameters":
        """Return what `to_tensors` was asked of."""
        precision, linear = tensors
        return cls(precision.numpy(), linear.numpy())

    def to_tensors(self) -> tuple[Tensor, Tensor]:
        """Return K and h as tensors, sharing memory."""
        return torch.from_numpy(self.precision), torch.from_numpy(self.linear)

    def is_finite(self) -> bool:
        """Return whether all entries are numbers."""
        return bool(np.isfinite(self.precision).all() and np.isfinite(self.linear).all())

    def largest(self) -> float:
        """Return the largest absolute entry."""
        return float(max(np.abs(self.precision).max(), np.abs(self.linear).max()))

    def is_definite(self) -> bool:
        """Return whether K, scaled to a diagonal of 1, is safely positive definite."""
        if not (self.is_finite() and (np.diagonal(self.precision) > 0).all()):
            return False
        return smallest_scaled_eigenvalue(torch.from_numpy(self.precision)) > _SMALLEST_EIGENVALUE

    def damped(self) -> "Parameters":
        """Return the same with interactions shrunk until K is definite, which sampling needs."""
        damped, diagonal = self, np.diag(np.diagonal(self.precision))
        while not damped.is_definite():
            shrunk = _DAMPING * damped.precision + (1 - _DAMPING) * diagonal
            damped = Parameters(shrunk, self.linear)
        return damped

    def seen_from(self, centre: FloatArray) -> "Parameters":
        """Return the same density's K and h for rows measured from a centre (d,).

        Or the same step of them, as both are linear.
        """
        return Parameters(self.precision, self.linear - self.precision @ centre)

    def plus(self, step: "Parameters", size: float) -> "Parameters":
        """Return the parameters after `size` times a step; K stays exactly symmetric."""
        precision = self.precision + size * step.precision
        return Parameters(0.5 * (precision + precision.T), self.linear + size * step.linear)


@dataclass(frozen=True)
class Moments:
    """Means of xxᵀ (d, d) and x (d,)."""

    second: FloatArray
    first: FloatArray

    @classmethod
    def of(cls, rows: FloatArray) -> "Moments":
        """Return those of rows stored as columns, (d, n)."""
        return cls(rows @ rows.T / rows.shape[1], rows.mean(axis=1))

    @classmethod
    def mean(cls, moments: "Sequence[Moments]") -> "Moments":
        """Return the average of those of equally many rows each."""
        return cls(
            np.mean([each.second for each in moments], axis=0),
            np.mean([each.first for each in moments], axis=0),
        )


def gradient(data: Moments, model: Moments, *, has_linear: bool) -> Parameters:
    """Return the gradient of the mean log likelihood: the data's statistics less the model's.

    K's part is that under the inner product tr(A B). Source: Rhodes and Gutmann (2019), Eq. 3.
    """
    linear = data.first - model.first
    return Parameters(
        0.5 * (model.second - data.second), linear if has_linear else np.zeros_like(linear)
    )


class Coordinates:
    """Symmetric K and h as one vector: K's upper triangle row by row, then h if it is free.

    K_ij and K_ji are one parameter, whose statistic is -x_i x_j; a diagonal one's is -½ x_i².
    """

    def __init__(self, d: int, *, has_linear: bool) -> None:
        self._rows, self._columns = np.triu_indices(d)
        self._d, self._has_linear = d, has_linear
        self._is_diagonal = self._rows == self._columns

    @property
    def size(self) -> int:
        """The number of free parameters."""
        return len(self._rows) + (self._d if self._has_linear else 0)

    @property
    def is_diagonal(self) -> NDArray[np.bool_]:
        """Whether a coordinate is a K_ii, (size,)."""
        return np.concatenate([self._is_diagonal, np.zeros(self.size - len(self._rows), bool)])

    def write(self, theta: Parameters) -> FloatArray:
        """Return the parameters as a vector (size,)."""
        matrix: FloatArray = theta.precision[self._rows, self._columns]
        return np.concatenate([matrix, theta.linear]) if self._has_linear else matrix

    def read(self, vector: FloatArray) -> Parameters:
        """Return the parameters that the vector (size,) holds; a fixed h is zero."""
        precision = np.zeros((self._d, self._d))
        num_matrix = len(self._rows)
        precision[self._rows, self._columns] = vector[:num_matrix]
        precision[self._columns, self._rows] = vector[:num_matrix]
        linear = vector[num_matrix:].copy() if self._has_linear else np.zeros(self._d)
        return Parameters(precision, linear)

    def derivative(self, slope: Parameters) -> FloatArray:
        """Return the derivative (size,) by the coordinates from a gradient under tr(A B)."""
        matrix = slope.precision[self._rows, self._columns] * np.where(self._is_diagonal, 1, 2)
        return np.concatenate([matrix, slope.linear]) if self._has_linear else matrix

    def fisher_product(self, state: FloatArray, vector: FloatArray) -> FloatArray:
        """Return the statistics' covariance over rows stored as columns (d, n), times `vector`.

        Two matrix products over the rows; the covariance itself is never formed.
        """
        theta = self.read(vector)
        projected = theta.linear @ state - 0.5 * ((theta.precision @ state) * state).sum(axis=0)
        weighted = state * ((projected - projected.mean()) / state.shape[1])
        return self.derivative(Parameters(-0.5 * weighted @ state.T, weighted.sum(axis=1)))

    def fisher_diagonal(self, state: FloatArray) -> FloatArray:
        """Return the statistics' variances (size,) over rows stored as columns (d, n)."""
        moments, squares = Moments.of(state), Moments.of(state**2)
        pairs = squares.second - moments.second**2
        variances = pairs[self._rows, self._columns] * np.where(self._is_diagonal, 0.25, 1.0)
        if not self._has_linear:
            return variances
        return np.concatenate([variances, squares.first - moments.first**2])
