"""Penalties on the precision matrix.

They act on the scaled interactions kappa_ij = K_ij / sqrt(k0_i k0_j), where k0 is what the
diagonal would be without interactions, so that no unit of measurement enters.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

import torch
from torch import Tensor

from vnce_engine.barrier import BarrierCurvature, LogDeterminantBarrier

# Where the adaptive penalty turns from a ridge into a logarithm: interactions well above it are
# hardly shrunk, those well below it as by a ridge.
LOG_SCALE = 0.05
# Strength of the pull of the scaled diagonal towards its mean, and the same where interactions too
# are pulled towards theirs.
DIAGONAL_STRENGTH = 0.25
CENTRED_DIAGONAL_STRENGTH = 1.0
# The number of rows at which a strength is taken as it is.
REFERENCE_ROWS = 1000


class PenaltyKind(StrEnum):
    """How interactions are shrunk: the strong ones hardly at all, in proportion, or to zero.

    A centred ridge shrinks in proportion, and towards the interactions' mean.
    """

    ADAPTIVE = "adaptive"
    RIDGE = "ridge"
    CENTRED_RIDGE = "centred-ridge"
    L1 = "l1"


@dataclass(frozen=True)
class Penalty:
    """lam sum_{i<j} s(kappa_ij), plus the diagonal's part, plus the barrier's if there is one.

    s(kappa) is ½ t² log(1 + kappa²/t²) (adaptive), ½ kappa² (ridge), ½ (kappa - mean kappa)²
    (centred ridge) or |kappa| (l1). The diagonal's part, r/2 sum_i (K_ii/k0_i - their mean)²,
    keeps a free diagonal from fitting noise that rows share. lam is `strength` * 1000 / n and r is
    0.25 * 1000 / n (1000 / n with a centred ridge) where the objective is averaged over n rows: a
    given strength is worth the same number of rows in tables of any size.
    A strength of 0 switches both parts off. The barrier's weight is b / n.

    Derivatives are those under the inner product tr(A B) of symmetric matrices.
    """

    strength: float
    kind: PenaltyKind
    inverse_k0: Tensor
    """1 / k0 (d,)"""
    num_rows: int
    barrier_rows: float = 0.0
    """b, the number of rows that the barrier is worth; 0 is no barrier."""

    @property
    def has_kink(self) -> bool:
        """Whether the penalty has no derivative where an interaction is zero."""
        return self.kind is PenaltyKind.L1 and self.strength > 0

    @property
    def is_concave_somewhere(self) -> bool:
        """Whether the second derivative may be negative."""
        return self.kind is PenaltyKind.ADAPTIVE and self.strength > 0

    def value(self, precision: Tensor) -> Tensor:
        """Return the penalty, a scalar; infinity where a barrier forbids `precision`."""
        kappa = self._kappa(precision)
        match self.kind:
            case PenaltyKind.ADAPTIVE:
                shape = 0.5 * LOG_SCALE**2 * torch.log1p((kappa / LOG_SCALE).square())
            case PenaltyKind.RIDGE:
                shape = 0.5 * kappa.square()
            case PenaltyKind.CENTRED_RIDGE:
                shape = 0.5 * _deviations(kappa).square()
            case PenaltyKind.L1:
                shape = kappa.abs()
            case _:
                assert_never(self.kind)
        value = 0.5 * self._pair_weight * shape.sum()
        value = value + 0.5 * self._diagonal_weight * self._dispersion(precision).square().sum()
        return value if self._barrier is None else value + self._barrier.value(precision)

    def gradient(self, precision: Tensor) -> Tensor:
        """Return the gradient (d, d); at a kink, where it has none, that of the other parts."""
        kappa = self._kappa(precision)
        match self.kind:
            case PenaltyKind.ADAPTIVE:
                slope = kappa / (1 + (kappa / LOG_SCALE).square())
            case PenaltyKind.RIDGE:
                slope = kappa
            case PenaltyKind.CENTRED_RIDGE:
                slope = _deviations(kappa)  # they sum to zero, so that the mean adds nothing
            case PenaltyKind.L1:
                slope = kappa.sign()
            case _:
                assert_never(self.kind)
        diagonal = self._diagonal_weight * self._dispersion(precision) * self.inverse_k0
        gradient = 0.5 * self._pair_weight * slope * self._scaling() + torch.diag(diagonal)
        return gradient if self._barrier is None else gradient + self._barrier.gradient(precision)

    def ascent(self, precision: Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient (d, d) of an objective less the penalty, given the objective's own.

        At a kink it is the subgradient of least size: zero where moving off would not gain.
        """
        ascent = gradient - self.gradient(precision)
        if not self.has_kink:
            return ascent
        threshold = 0.5 * self._pair_weight * self._scaling()
        shrunk = ascent.sign() * (ascent.abs() - threshold).clamp(min=0)
        return torch.where(self._at_kink(precision), shrunk, ascent)

    def orthant(self, precision: Tensor, ascent: Tensor) -> Tensor:
        """Return the sign (d, d) that each K_ij may have near here, 0 where it has to stay.

        Within an orthant the penalty is smooth. Off-diagonal entries only; the diagonal is 0.
        Source: Andrew and Gao (2007), "Scalable training of L1-regularized log-linear models".
        """
        signs = torch.where(precision == 0, ascent.sign(), precision.sign())
        return signs.fill_diagonal_(0.0)

    def curvature(self, precision: Tensor, *, is_bound: bool = False) -> "PenaltyCurvature":
        """Return the convex part of the second derivative; `is_bound`: that of an upper bound.

        The log part is concave beyond t; its (small) negative curvature there is left out, so that
        the sum with a concave objective's stays positive. The bound is the parabola that touches
        it here: less near, but a step that it promises to gain cannot lose.
        Source: Hunter and Li (2005), "Variable selection using MM algorithms", Ann. Stat. 33.
        """
        match self.kind:
            case PenaltyKind.ADAPTIVE:
                squares = (self._kappa(precision) / LOG_SCALE).square()
                second = (1 - squares).clamp(min=0) / (1 + squares).square()
                if is_bound:
                    second = 1 / (1 + squares)
            case PenaltyKind.RIDGE | PenaltyKind.CENTRED_RIDGE:
                second = torch.ones_like(precision)
            case PenaltyKind.L1:
                second = torch.zeros_like(precision)
            case _:
                assert_never(self.kind)
        weights = 0.5 * self._pair_weight * second * self._scaling().square()
        barrier = None if self._barrier is None else self._barrier.curvature(precision)
        return PenaltyCurvature(
            weights.fill_diagonal_(0.0),
            self._diagonal_weight,
            self.inverse_k0,
            barrier,
            is_centred=self.kind is PenaltyKind.CENTRED_RIDGE,
        )

    @property
    def _pair_weight(self) -> float:
        return self.strength * REFERENCE_ROWS / self.num_rows

    @property
    def _diagonal_weight(self) -> float:
        if not self.strength:
            return 0.0
        is_centred = self.kind is PenaltyKind.CENTRED_RIDGE
        strength = CENTRED_DIAGONAL_STRENGTH if is_centred else DIAGONAL_STRENGTH
        return strength * REFERENCE_ROWS / self.num_rows

    @property
    def _barrier(self) -> LogDeterminantBarrier | None:
        if not self.barrier_rows:
            return None
        return LogDeterminantBarrier(self.barrier_rows / self.num_rows)

    def _scaling(self) -> Tensor:
        """Return kappa_ij / K_ij (d, d)."""
        root = self.inverse_k0.sqrt()
        return torch.outer(root, root)

    def _kappa(self, precision: Tensor) -> Tensor:
        """Return kappa (d, d) with a zero diagonal."""
        return (precision * self._scaling()).fill_diagonal_(0.0)

    def _at_kink(self, precision: Tensor) -> Tensor:
        return (precision == 0).fill_diagonal_(False)

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
    barrier: BarrierCurvature | None = None
    is_centred: bool = False
    """Whether the mean of the scaled interactions is free."""

    def product(self, direction: Tensor) -> Tensor:
        """Return the second derivative times a symmetric `direction` (d, d)."""
        relative = direction.diagonal() * self.inverse_k0
        diagonal = self.diagonal_weight * (relative - relative.mean()) * self.inverse_k0
        product = self.pair_weights * direction + torch.diag(diagonal)
        if self.is_centred:
            # A rank-one part of the size of the pairs' own: it leaves a common shift alone.
            root = self.pair_weights.sqrt()
            d = root.shape[0]
            product = product - root * ((root * direction).sum() / (d * (d - 1)))
        return product if self.barrier is None else product + self.barrier.product(direction)

    def diagonal(self) -> Tensor:
        """Return its diagonal, one value (d, d) for each entry."""
        d = self.inverse_k0.shape[0]
        share = 1 - 1 / d
        pair_share = 1 - 2 / (d * (d - 1)) if self.is_centred else 1.0
        diagonal = pair_share * self.pair_weights + torch.diag(
            self.diagonal_weight * share * self.inverse_k0.square()
        )
        return diagonal if self.barrier is None else diagonal + self.barrier.diagonal()


def _deviations(kappa: Tensor) -> Tensor:
    """Return the interactions less their mean (d, d), with a zero diagonal."""
    d = kappa.shape[0]
    return (kappa - kappa.sum() / (d * (d - 1))).fill_diagonal_(0.0)


def weakest_safe_strength(kind: PenaltyKind = PenaltyKind.RIDGE) -> float:
    """Return the strength below which a fit with as many parameters as rows may run away.

    In total over the rows a ridge must be at least 30; an L1 penalty needs the slope that such a
    ridge has at an interaction of 1/30, which is 1 over all rows.
    """
    ridge = 30 / REFERENCE_ROWS
    return ridge / 30 if kind is PenaltyKind.L1 else ridge
