"""Penalties on the precision matrix.

They act on the scaled interactions kappa_ij = K_ij / sqrt(k0_i k0_j), where k0 is what the
diagonal would be without interactions, so that no unit of measurement enters.
"""

from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor

# Where the adaptive penalty turns from a ridge into a logarithm: interactions well above it are
# hardly shrunk, those well below it as by a ridge.
LOG_SCALE = 0.05
# Strength of the pull of the scaled diagonal towards its mean.
DIAGONAL_STRENGTH = 0.25
# The number of rows at which a strength is taken as it is.
REFERENCE_ROWS = 1000


class PenaltyKind(StrEnum):
    """How interactions are shrunk: all in proportion, or the strong ones hardly at all."""

    ADAPTIVE = "adaptive"
    RIDGE = "ridge"


@dataclass(frozen=True)
class Penalty:
    """lam t²/2 sum_{i<j} log(1 + kappa_ij²/t²), or lam/2 sum kappa_ij², plus the diagonal's part.

    The diagonal's part, s/2 sum_i (K_ii/k0_i - their mean)², keeps a free diagonal from fitting
    noise that rows share. lam is `strength` * 1000 / n and s is 0.25 * 1000 / n where the objective
    is averaged over n rows: a given strength is worth the same number of rows in tables of any
    size. A strength of 0 switches both parts off.

    Derivatives are those under the inner product tr(A B) of symmetric matrices.
    """

    strength: float
    kind: PenaltyKind
    inverse_k0: Tensor
    """1 / k0 (d,)"""
    num_rows: int

    def value(self, precision: Tensor) -> Tensor:
        """Return the penalty, a scalar."""
        squares = self._scaled_squares(precision)
        if self.kind is PenaltyKind.ADAPTIVE:
            squares = torch.log1p(squares)
        pairs = 0.25 * LOG_SCALE**2 * self._pair_weight * squares.sum()
        return pairs + 0.5 * self._diagonal_weight * self._dispersion(precision).square().sum()

    def gradient(self, precision: Tensor) -> Tensor:
        """Return the gradient (d, d)."""
        weights = self._pair_weights()
        if self.kind is PenaltyKind.ADAPTIVE:
            weights = weights / (1 + self._scaled_squares(precision))
        diagonal = self._diagonal_weight * self._dispersion(precision) * self.inverse_k0
        return 0.5 * weights * precision + torch.diag(diagonal)

    def curvature(self, precision: Tensor) -> "PenaltyCurvature":
        """Return the convex part of the second derivative.

        The log part is concave beyond t; its (small) negative curvature there is left out, so that
        the sum with a concave objective's stays positive.
        """
        weights = self._pair_weights()
        if self.kind is PenaltyKind.ADAPTIVE:
            squares = self._scaled_squares(precision)
            weights = weights * (1 - squares).clamp(min=0) / (1 + squares).square()
        return PenaltyCurvature(0.5 * weights, self._diagonal_weight, self.inverse_k0)

    @property
    def _pair_weight(self) -> float:
        return self.strength * REFERENCE_ROWS / self.num_rows

    @property
    def _diagonal_weight(self) -> float:
        return DIAGONAL_STRENGTH * REFERENCE_ROWS / self.num_rows if self.strength else 0.0

    def _pair_weights(self) -> Tensor:
        weights = self._pair_weight * torch.outer(self.inverse_k0, self.inverse_k0)
        return weights.fill_diagonal_(0.0)

    def _scaled_squares(self, precision: Tensor) -> Tensor:
        """Return kappa² / t² with a zero diagonal."""
        squares = precision.square() * torch.outer(self.inverse_k0, self.inverse_k0)
        return squares.fill_diagonal_(0.0) / LOG_SCALE**2

    def _dispersion(self, precision: Tensor) -> Tensor:
        relative = precision.diagonal() * self.inverse_k0
        return relative - relative.mean()


@dataclass(frozen=True)
class PenaltyCurvature:
    """A positive semi-definite second derivative of a penalty."""

    pair_weights: Tensor
    """(d, d), zero diagonal"""
    diagonal_weight: float
    inverse_k0: Tensor
    """(d,)"""

    def product(self, direction: Tensor) -> Tensor:
        """Return the second derivative times a symmetric `direction` (d, d)."""
        relative = direction.diagonal() * self.inverse_k0
        diagonal = self.diagonal_weight * (relative - relative.mean()) * self.inverse_k0
        return self.pair_weights * direction + torch.diag(diagonal)

    def diagonal(self) -> Tensor:
        """Return its diagonal, one value (d, d) for each entry."""
        share = 1 - 1 / self.inverse_k0.shape[0]
        return self.pair_weights + torch.diag(
            self.diagonal_weight * share * self.inverse_k0.square()
        )


def weakest_safe_strength() -> float:
    """Return the strength below which a fit with as many parameters as rows may run away.

    In total over the rows it is 30.
    """
    return 30 / REFERENCE_ROWS
