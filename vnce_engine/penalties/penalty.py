"""Penalties on the precision matrix.

They act on the scaled interactions kappa_ij = K_ij / sqrt(k0_i k0_j), where k0 is what the
diagonal would be without interactions, so that no unit of measurement enters.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, assert_never

import torch
from torch import Tensor
from torch.nn.functional import pad

from vnce_engine.distributions.information import upper_triangle
from vnce_engine.penalties.barrier import Barrier, BarrierCurvature

# Where the adaptive penalty turns from a ridge into a logarithm: interactions well above it are
# hardly shrunk, those well below it as by a ridge.
LOG_SCALE = 0.05
# Strength of the penalty on the scaled diagonal's distance from its centre, and the same where
# interactions too are shrunk towards theirs; and the distance at which that penalty turns from a
# ridge into a logarithm: the diagonal of a column that others nearly determine is many times that
# of the rest, and a ridge on it flattens just the strongest interactions.
DIAGONAL_STRENGTH = 0.25
CENTRED_DIAGONAL_STRENGTH = 1.0
DIAGONAL_LOG_SCALE = 0.2
# The strength of the interactions' penalty from which the diagonal's is whole; below, it fades with
# it, so that ever weaker penalties tend to none. Not of L1, whose strengths are in other units.
FULL_DIAGONAL_FROM = 0.5
# Reweighted means that find the centre; they end where it moves by no more than rounding.
_MOST_MEANS = 200
_CENTRE_TOLERANCE = 1e-14
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


# The same for signatures that take a kind by its name.
PenaltyName = Literal["adaptive", "ridge", "centred-ridge", "l1"]


@dataclass(frozen=True)
class Penalty:
    """lam sum_{i<j} s(kappa_ij), plus the diagonal's part, plus the barrier's if there is one.

    s(kappa) is ½ t² log(1 + kappa²/t²) (adaptive), ½ kappa² (ridge), ½ (kappa - mean kappa)²
    (centred ridge) or |kappa| (l1). The diagonal's part, r sum_i ½ u² log(1 + delta_i²/u²) with
    delta_i = K_ii/k0_i - gamma, u = 0.2 and gamma the centre for which it is least (near the
    median), keeps a free diagonal from fitting noise that rows share. lam is `strength` * 1000 / n
    and r is 0.25 * 1000 / n (1000 / n with a centred ridge) where the objective is averaged over n
    rows: a given strength is worth the same number of rows in tables of any size. Below a
    `strength` of .5 r is less in proportion.
    A strength of 0 switches both parts off.

    The barrier's weight is b / n and its D is (1000 / n)² k0, so that it soon fades unless K is
    about indefinite. One that is plain -log det K, with b = 1, flattens a ring's interactions by
    half a per cent still at n = 20,000.

    A relaxed adaptive penalty is the ridge ½ w_ij kappa_ij² with w = 1 / (1 + kappa²/t²)^(1 + a)
    fixed at an earlier estimate. With a = 0 it shrinks by as much as before; with a = 1 hardly at
    all where that found a strong interaction, and elsewhere about as much as before. Source: Zou
    and Li (2008), "One-step sparse estimates in nonconcave penalized likelihood models", Ann. Stat.
    36, on fixing weights at a first estimate.

    Derivatives are those under the inner product tr(A B) of symmetric matrices.
    """

    strength: float
    kind: PenaltyKind
    inverse_k0: Tensor
    """1 / k0 (d,)"""
    num_rows: int
    barrier_rows: float = 0.0
    """b, the number of rows that the barrier is worth; 0 is no barrier."""
    relaxed_weights: Tensor | None = None
    """w (d, d) of a relaxed adaptive penalty; None otherwise."""

    def relaxed(self, precision: Tensor, share: float = 1.0) -> "Penalty":
        """Return the relaxed penalty, weights at `precision`, of an adaptive one; else itself.

        `share` is a, from 0 to 1.
        """
        if self.kind is not PenaltyKind.ADAPTIVE:
            return self
        squares = (self._kappa(precision) / LOG_SCALE).square()
        return replace(self, relaxed_weights=(1 + squares).pow(-1 - share))

    @property
    def is_nonsmooth(self) -> bool:
        """Whether the penalty has no derivative where an interaction is zero."""
        return self.kind is PenaltyKind.L1 and self.strength > 0

    @property
    def is_concave_somewhere(self) -> bool:
        """Whether the second derivative may be negative."""
        is_adaptive = self.kind is PenaltyKind.ADAPTIVE and self.relaxed_weights is None
        return is_adaptive and self.strength > 0

    def value(self, precision: Tensor) -> Tensor:
        """Return the penalty, a scalar; infinity where a barrier forbids `precision`."""
        kappa = self._kappa(precision)
        match self.kind:
            case PenaltyKind.ADAPTIVE if self.relaxed_weights is not None:
                shape = 0.5 * self.relaxed_weights * kappa.square()
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
        deviations = self._deviations_of_diagonal(precision) / DIAGONAL_LOG_SCALE
        logarithms = torch.log1p(deviations.square()).sum()
        value = value + 0.5 * DIAGONAL_LOG_SCALE**2 * self._diagonal_weight * logarithms
        return value if self._barrier is None else value + self._barrier.value(precision)

    def gradient(self, precision: Tensor) -> Tensor:
        """Return the gradient (d, d); at a kink, where it has none, that of the other parts."""
        kappa = self._kappa(precision)
        match self.kind:
            case PenaltyKind.ADAPTIVE if self.relaxed_weights is not None:
                slope = self.relaxed_weights * kappa
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
        # The centre is where the slope in it is zero, so that it adds nothing.
        deviations = self._deviations_of_diagonal(precision)
        diagonal = self._diagonal_weights(deviations) * deviations * self.inverse_k0
        gradient = 0.5 * self._pair_weight * slope * self._scaling() + torch.diag(diagonal)
        return gradient if self._barrier is None else gradient + self._barrier.gradient(precision)

    def ascent(self, precision: Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient (d, d) of an objective less the penalty, given the objective's own.

        At a kink it is the subgradient of least size: zero where moving off would not gain.
        """
        ascent = gradient - self.gradient(precision)
        if not self.is_nonsmooth:
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
            case PenaltyKind.ADAPTIVE if self.relaxed_weights is not None:
                second = self.relaxed_weights
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
            self._diagonal_weights(self._deviations_of_diagonal(precision)),
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
        if self.kind is not PenaltyKind.L1:
            strength *= min(1.0, self.strength / FULL_DIAGONAL_FROM)
        return strength * REFERENCE_ROWS / self.num_rows

    @property
    def _barrier(self) -> Barrier | None:
        if not self.barrier_rows:
            return None
        shift = (REFERENCE_ROWS / self.num_rows) ** 2 / self.inverse_k0
        return Barrier(self.barrier_rows / self.num_rows, shift)

    def _scaling(self) -> Tensor:
        """Return kappa_ij / K_ij (d, d)."""
        root = self.inverse_k0.sqrt()
        return torch.outer(root, root)

    def _kappa(self, precision: Tensor) -> Tensor:
        """Return kappa (d, d) with a zero diagonal."""
        return (precision * self._scaling()).fill_diagonal_(0.0)

    def _at_kink(self, precision: Tensor) -> Tensor:
        return (precision == 0).fill_diagonal_(False)

    def _deviations_of_diagonal(self, precision: Tensor) -> Tensor:
        """Return delta (d,)."""
        relative = precision.diagonal() * self.inverse_k0
        return relative - _robust_centre(relative)

    def _diagonal_weights(self, deviations: Tensor) -> Tensor:
        """Return the weight (d,) of each ½ delta_i² in the parabola that touches the penalty."""
        return self._diagonal_weight / (1 + (deviations / DIAGONAL_LOG_SCALE).square())


@dataclass(frozen=True)
class PenaltyCurvature:
    """A positive semi-definite second derivative of a penalty."""

    pair_weights: Tensor
    """(d, d), zero diagonal"""
    diagonal_weights: Tensor
    """(d,), of the squared distances of K_ii/k0_i from their weighted mean"""
    inverse_k0: Tensor
    """(d,)"""
    barrier: BarrierCurvature | None = None
    is_centred: bool = False
    """Whether the mean of the scaled interactions is free."""

    def product(self, direction: Tensor) -> Tensor:
        """Return the second derivative times a symmetric `direction` (d, d)."""
        relative = direction.diagonal() * self.inverse_k0
        weights = self.diagonal_weights
        total = weights.sum()
        mean = weights @ relative / total if total > 0 else 0.0
        diagonal = weights * (relative - mean) * self.inverse_k0
        product = self.pair_weights * direction + torch.diag(diagonal)
        if self.is_centred:
            # A rank-one part of the size of the pairs' own: it leaves a common shift alone.
            root = self.pair_weights.sqrt()
            d = root.shape[0]
            product = product - root * ((root * direction).sum() / (d * (d - 1)))
        return product if self.barrier is None else product + self.barrier.product(direction)

    def matrix(self) -> Tensor:
        """Return it (p, p) for all entries of A, also h and c; see `information.py`."""
        d = len(self.inverse_k0)
        i, j = upper_triangle(d + 1, self.inverse_k0.device)
        of_pair = (i < j) & (j < d)
        pairs = torch.where(of_pair, 2 * pad(self.pair_weights, (0, 1, 0, 1))[i, j], 0.0)
        matrix = torch.diag(pairs)
        on_diagonal = ((i == j) & (i < d)).nonzero().flatten()
        slope = self.diagonal_weights * self.inverse_k0
        total = self.diagonal_weights.sum().clamp(min=torch.finfo(slope.dtype).tiny)
        shared = torch.diag(slope * self.inverse_k0) - torch.outer(slope, slope) / total
        matrix[on_diagonal.unsqueeze(1), on_diagonal] += shared
        if self.is_centred:
            matrix -= torch.outer(pairs.sqrt(), pairs.sqrt()) * (2 / (d * (d - 1)))
        return matrix if self.barrier is None else matrix + self.barrier.matrix()

    def diagonal(self) -> Tensor:
        """Return its diagonal, one value (d, d) for each entry."""
        d = self.inverse_k0.shape[0]
        weights = self.diagonal_weights
        share = 1 - weights / weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)
        pair_share = 1 - 2 / (d * (d - 1)) if self.is_centred else 1.0
        diagonal = pair_share * self.pair_weights + torch.diag(
            weights * share * self.inverse_k0.square()
        )
        return diagonal if self.barrier is None else diagonal + self.barrier.diagonal()


def _robust_centre(values: Tensor) -> Tensor:
    """Return the centre of `values` (d,) by the diagonal's penalty, from their median on."""
    centre = values.median()
    for _ in range(_MOST_MEANS):
        weights = 1 / (1 + ((values - centre) / DIAGONAL_LOG_SCALE).square())
        moved = weights @ values / weights.sum()
        if float((moved - centre).detach().abs()) <= _CENTRE_TOLERANCE * float(
            moved.detach().abs()
        ):
            return moved
        centre = moved
    return centre


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
