"""Means of functions of a missing cell: its powers, its exponential less 1, any other.

A cell y is a normal truncated to [0, inf), or a normal on the line whose negative values stand for
0. With alpha = -mu / sigma and the excess e = y / sigma of a truncated one, repeated integrals of
the normal tail give E e^k = k! rho_1 ... rho_k, where 1 / rho_(k-1) = alpha + k rho_k: taken from
high k down this does not cancel, however far in the tail.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor
from torch.special import erfc, erfcx, log_ndtr

from vnce_engine.distributions import truncated_normal

# From this alpha on moments come from the ratios, whose fraction is right to 1e-15 at this depth.
# Below it, the mean's recursion loses fewer than three of its digits.
_RATIO_ALPHA = 3.0
_RATIO_DEPTH = 50
# Below this mean, E exp(y) - 1 cancels to fewer digits than three terms of its series are right to.
_SERIES_MEAN = 1e-4
# Nodes and weights of a mean over the standard normal, and over a uniform.
_HERMITE_NODES, _HERMITE_WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
_HERMITE = (_HERMITE_NODES.tolist(), (_HERMITE_WEIGHTS / math.sqrt(2 * math.pi)).tolist())
# The uniform is 1 - v⁴ of another, so that nodes crowd where quantiles are steep.
_LEGENDRE_NODES, _LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(40)
_V = 0.5 * (1 - _LEGENDRE_NODES)
_QUANTILES = ((1 - _V**4).tolist(), (2 * _V**3 * _LEGENDRE_WEIGHTS).tolist())


class CellMeans(Protocol):
    """Cells (..., p), of which a transform asks what it needs."""

    @property
    def mu(self) -> Tensor:
        """The parent normals' means."""
        ...

    def at(self, index: Tensor) -> Self:
        """Return some of the cells, int64 (q,) among the last axis."""
        ...

    def mean(self) -> Tensor:
        """Return E y."""
        ...

    def expectation(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Return E f(y) for a continuous function that works element by element."""
        ...

    def power(self, exponent: int) -> Tensor:
        """Return E y^exponent, for an exponent of 1, 2 or 3."""
        ...

    def expm1(self) -> Tensor:
        """Return E exp(y) - 1."""
        ...


@dataclass(frozen=True)
class TruncatedCells:
    """Normals N(mu, sigma²) truncated to [0, inf); tensors that broadcast together."""

    mu: Tensor
    sigma: Tensor

    def at(self, index: Tensor) -> "TruncatedCells":
        """Return some of the cells, int64 (q,) among the last axis."""
        return TruncatedCells(self.mu[..., index], self.sigma[..., index])

    def mean(self) -> Tensor:
        """Return E y."""
        return self.power(1)

    def expectation(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Return E f(y) for a continuous function, by quadrature over quantiles."""
        total = torch.zeros(())
        for node, weight in zip(*_QUANTILES, strict=True):
            cells = truncated_normal.quantile(torch.full_like(self.mu, node), self.mu, self.sigma)
            total = total + weight * function(cells)
        return total

    def power(self, exponent: int) -> Tensor:
        """Return E y^exponent, for an exponent of 1, 2 or 3, right to 1e-12 of itself."""
        return self.sigma**exponent * _standard_powers(-self.mu / self.sigma)[exponent - 1]

    def expm1(self) -> Tensor:
        """Return E exp(y) - 1, right to 1e-11 of itself; infinite beyond the largest number."""
        alpha = -self.mu / self.sigma
        first, second, third = (self.power(exponent) for exponent in (1, 2, 3))
        series = first + second / 2 + third / 6
        return torch.where(
            first < _SERIES_MEAN, series, torch.expm1(_log_exponential(alpha, self.sigma))
        )


@dataclass(frozen=True)
class ClampedCells:
    """Normals N(mu, sigma²), tensors that broadcast together, before a map of the whole line.

    Or max(y, 0), before powers and the exponential, whose values below 0 stand for it.
    """

    mu: Tensor
    sigma: Tensor

    def at(self, index: Tensor) -> "ClampedCells":
        """Return some of the cells, int64 (q,) among the last axis."""
        return ClampedCells(self.mu[..., index], self.sigma[..., index])

    def mean(self) -> Tensor:
        """Return E y."""
        return self.mu

    def expectation(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Return E f(y) for a continuous function, by Gauss-Hermite quadrature."""
        total = torch.zeros(())
        for node, weight in zip(*_HERMITE, strict=True):
            total = total + weight * function(self.mu + node * self.sigma)
        return total

    def power(self, exponent: int) -> Tensor:
        """Return E max(y, 0)^exponent, for an exponent of 1, 2 or 3."""
        return self._above_zero() * self._truncated().power(exponent)

    def expm1(self) -> Tensor:
        """Return E exp(max(y, 0)) - 1."""
        return self._above_zero() * self._truncated().expm1()

    def _above_zero(self) -> Tensor:
        return truncated_normal.log_mass(self.mu, self.sigma).exp()

    def _truncated(self) -> TruncatedCells:
        return TruncatedCells(self.mu, self.sigma)


def _standard_powers(alpha: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return E e, E e² and E e³ of e = t - alpha, t standard normal truncated to t >= alpha."""
    in_tail = alpha > _RATIO_ALPHA
    body_alpha = torch.where(in_tail, 0.0, alpha)
    mean, variance = truncated_normal.moments(-body_alpha, torch.ones_like(body_alpha))
    square = variance + mean.square()
    cube = 2 * mean - body_alpha * square
    first, second, third = _tail_ratios(torch.where(in_tail, alpha, _RATIO_ALPHA))
    return (
        torch.where(in_tail, first, mean),
        torch.where(in_tail, 2 * first * second, square),
        torch.where(in_tail, 6 * first * second * third, cube),
    )


def _tail_ratios(alpha: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return rho_1, rho_2 and rho_3 for alpha of at least `_RATIO_ALPHA`."""
    # Where two neighbouring ratios are alike, they solve a quadratic equation.
    ratio = 2 / (alpha + (alpha.square() + 4 * (_RATIO_DEPTH + 1)).sqrt())
    ratios = []
    for k in range(_RATIO_DEPTH, 1, -1):
        ratio = 1 / (alpha + k * ratio)
        ratios.append(ratio)
    third, second, first = ratios[-3:]
    return first, second, third


def _log_exponential(alpha: Tensor, sigma: Tensor) -> Tensor:
    """Return log E exp(sigma e), e as in `_standard_powers`.

    exp(½ sigma² - alpha sigma) times the ratio of the normal tails beyond alpha - sigma and alpha.
    The squares in the tails' logarithms cancel against the exponent wherever they are large.
    """
    shifted = alpha - sigma
    body = sigma * (0.5 * sigma - alpha) + log_ndtr(-shifted) - log_ndtr(-alpha)
    tail_alpha = alpha.clamp(min=0)
    log_tail = erfcx(tail_alpha / math.sqrt(2)).log()
    from_tail = erfcx(shifted.clamp(min=0) / math.sqrt(2)).log() - log_tail
    into_body = 0.5 * shifted.square() + erfc(shifted / math.sqrt(2)).log() - log_tail
    tail = torch.where(shifted > 0, from_tail, into_body)
    return torch.where(alpha > 0, tail, body)
