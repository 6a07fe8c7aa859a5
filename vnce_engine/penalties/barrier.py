"""A barrier that keeps K positive definite and leaves alone what is far from indefinite."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from vnce_engine.distributions.definiteness import inverse
from vnce_engine.distributions.information import upper_triangle


@dataclass(frozen=True)
class Barrier:
    """weight * (log det (K + D) - log det K), to be subtracted from an objective.

    D is diagonal and positive. Were it a multiple m of 1, each eigenvalue of K would add
    log(1 + m / eigenvalue): far below m that is minus the log determinant, a likelihood's of normal
    rows, and far above it fades as 1 / eigenvalue. It is convex, as the second derivative of minus
    log det falls with K, and infinite unless K is definite.

    Derivatives are those under the inner product tr(A B) of symmetric matrices.
    """

    weight: float
    shift: Tensor
    """The diagonal of D (d,)."""

    def value(self, precision: Tensor) -> Tensor:
        """Return the barrier, a scalar; infinity where `precision` is not positive definite."""
        factor, info = torch.linalg.cholesky_ex(precision)
        if info > 0:
            return precision.new_tensor(torch.inf)
        shifted = torch.linalg.cholesky(precision + torch.diag(self.shift))
        log_ratio: Tensor = (shifted.diagonal() / factor.diagonal()).log().sum()
        return 2 * self.weight * log_ratio

    def gradient(self, precision: Tensor) -> Tensor:
        """Return weight ((K + D)⁻¹ - K⁻¹) (d, d), exactly symmetric; NaN unless K is definite."""
        shifted = inverse(precision + torch.diag(self.shift))
        return self.weight * (shifted - inverse(precision))

    def curvature(self, precision: Tensor) -> "BarrierCurvature":
        """Return the second derivative; NaN unless `precision` is positive definite."""
        shifted = inverse(precision + torch.diag(self.shift))
        return BarrierCurvature(self.weight, inverse(precision), shifted)


@dataclass(frozen=True)
class BarrierCurvature:
    """The second derivative V -> weight (K⁻¹ V K⁻¹ - (K + D)⁻¹ V (K + D)⁻¹) of a barrier."""

    weight: float
    inverse: Tensor
    """K⁻¹ (d, d)"""
    shifted_inverse: Tensor
    """(K + D)⁻¹ (d, d)"""

    def product(self, direction: Tensor) -> Tensor:
        """Return it times a symmetric `direction` (d, d)."""
        near = self.inverse @ direction @ self.inverse
        far = self.shifted_inverse @ direction @ self.shifted_inverse
        return self.weight * (near - far)

    def matrix(self) -> Tensor:
        """Return it (p, p) for the entries of A, zero for those of h and c; see `information.py`.

        With E the slope of K in such an entry, -log det K has tr(E K⁻¹ E' K⁻¹).
        """
        return self.weight * (_by_entry(self.inverse) - _by_entry(self.shifted_inverse))

    def diagonal(self) -> Tensor:
        """Return its diagonal, one value (d, d) for each entry of K."""
        return self.weight * (_of_each(self.inverse) - _of_each(self.shifted_inverse))


def _by_entry(inverse: Tensor) -> Tensor:
    """Return the second derivative (p, p) of -log det K, given K⁻¹, in the entries of A."""
    inverse = pad(inverse, (0, 1, 0, 1))
    i, j = upper_triangle(len(inverse), inverse.device)
    products = inverse[i][:, i] * inverse[j][:, j] + inverse[i][:, j] * inverse[j][:, i]
    share = torch.where(i == j, 0.5, 1.0).to(inverse.dtype)
    return 2 * products * torch.outer(share, share)


def _of_each(inverse: Tensor) -> Tensor:
    """Return the diagonal of the second derivative of -log det K, given K⁻¹, by entry (d, d)."""
    diagonal = inverse.diagonal()
    # An off-diagonal entry moves together with its mirror image.
    pairs = torch.outer(diagonal, diagonal) + inverse.square()
    return pairs - torch.diag(diagonal.square())
