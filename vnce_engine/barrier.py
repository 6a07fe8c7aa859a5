"""A barrier that keeps K positive definite: minus the log determinant, weakly weighted."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from vnce_engine.information import upper_triangle


@dataclass(frozen=True)
class LogDeterminantBarrier:
    """-weight * log det K, to be subtracted from an objective; infinite unless K is definite.

    It is convex. With weight b / n where the objective is a mean over n rows, it is what 2b normal
    rows' likelihood has of the log determinant: a prior that fades as rows come in.

    Derivatives are those under the inner product tr(A B) of symmetric matrices.
    """

    weight: float

    def value(self, precision: Tensor) -> Tensor:
        """Return the barrier, a scalar; infinity where `precision` is not positive definite."""
        factor, info = torch.linalg.cholesky_ex(precision)
        if info > 0:
            return precision.new_tensor(torch.inf)
        log_determinant: Tensor = 2 * factor.diagonal().log().sum()
        return -self.weight * log_determinant

    def gradient(self, precision: Tensor) -> Tensor:
        """Return -weight K⁻¹ (d, d), exactly symmetric; NaN unless K is positive definite."""
        return -self.weight * inverse(precision)

    def curvature(self, precision: Tensor) -> "BarrierCurvature":
        """Return the second derivative; NaN unless `precision` is positive definite."""
        return BarrierCurvature(self.weight, inverse(precision))


@dataclass(frozen=True)
class BarrierCurvature:
    """The second derivative V -> weight K⁻¹ V K⁻¹ of a barrier."""

    weight: float
    inverse: Tensor
    """K⁻¹ (d, d)"""

    def product(self, direction: Tensor) -> Tensor:
        """Return it times a symmetric `direction` (d, d)."""
        return self.weight * (self.inverse @ direction @ self.inverse)

    def matrix(self) -> Tensor:
        """Return it (p, p) for the entries of A, zero for those of h and c; see `information.py`.

        With E the slope of K in such an entry it is weight tr(E K⁻¹ E' K⁻¹).
        """
        inverse = pad(self.inverse, (0, 1, 0, 1))
        i, j = upper_triangle(len(inverse), inverse.device)
        products = inverse[i][:, i] * inverse[j][:, j] + inverse[i][:, j] * inverse[j][:, i]
        share = torch.where(i == j, 0.5, 1.0).to(inverse.dtype)
        return products * torch.outer(share, share) * (2 * self.weight)

    def diagonal(self) -> Tensor:
        """Return its diagonal, one value (d, d) for each entry of K."""
        diagonal = self.inverse.diagonal()
        # An off-diagonal entry moves together with its mirror image.
        pairs = torch.outer(diagonal, diagonal) + self.inverse.square()
        return self.weight * (pairs - torch.diag(diagonal.square()))


def is_positive_definite(precision: Tensor) -> bool:
    """Return whether a symmetric matrix (d, d) has a Cholesky factor."""
    return bool(torch.linalg.cholesky_ex(precision).info == 0)


def inverse(precision: Tensor) -> Tensor:
    """Return K⁻¹ (d, d), exactly symmetric, of a positive definite K; NaN of any other."""
    factor, info = torch.linalg.cholesky_ex(precision)
    if info > 0:
        return torch.full_like(precision, torch.nan)
    inverted = torch.cholesky_inverse(factor)
    return 0.5 * (inverted + inverted.mT)
