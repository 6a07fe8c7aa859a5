"""The univariate normal distribution truncated to an interval, bounded or not.

Functions are elementwise over tensors of one floating type that broadcast together. `mu` and
`sigma` > 0 belong to the parent (untruncated) normal; `lower` < `upper` may be infinite, and the
interval may lie any number of `sigma` away from `mu`. Mirrored arguments give mirrored results.

Everything is measured from the mode, the point of the interval that is nearest to `mu`, and
relative to the density there. That ratio is at most 1, smooth, and as wide as either the interval
or the normal's decay, so one Gauss-Legendre rule integrates it everywhere to rounding error:
there are no cases of near and far tails or narrow intervals, nothing cancels, and no variance can
come out negative. In float64 log masses, means (as distances from the mode) and variances keep
twelve digits up to 100 sigma outside and down to widths of 1e-8 sigma. For the half-line [0, inf)
alone `truncated_normal` has closed forms, which are faster.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.special import erfc, erfcx, ndtri

from vnce_engine.distributions.truncated_normal import hazard

# Where the density has fallen to exp(-40) of its mode, integrals end: no float64 sees the rest.
_LOG_DECAY = 40.0
# The relative density's Chebyshev coefficients fall like exp(-k² / 40) or faster on that range, so
# that 48 points leave an error below 1e-16.
_NUM_NODES = 48
# An infinite bound is put this many sigma beyond the mode: outside every integral's range.
_FAR = 50.0
# Newton's method on the log survival function doubles the digits: 6 steps are enough from a start
# that is right to a factor of 2.
_NEWTON_STEPS = 6


@dataclass(frozen=True)
class _Standard:
    """An interval measured in sigma from its mode, elementwise."""

    mode: Tensor
    sigma: Tensor
    # The mode's distance from mu: 0 where mu is inside, positive right of it, negative left of it.
    alpha: Tensor
    # The interval's ends as distances from the mode; start <= 0 <= end.
    start: Tensor
    end: Tensor

    def log_ratio(self, offset: Tensor) -> Tensor:
        """Return the log density at the mode plus `offset`, less that at the mode."""
        return -offset * (self.alpha + 0.5 * offset)


def log_mass(mu: Tensor, sigma: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Return the log of the parent normal's probability of the interval."""
    standard = _standardise(mu, sigma, lower, upper)
    integral = _relative_mass(standard)
    by_integral = torch.log(integral) - 0.5 * standard.alpha.square() - 0.5 * math.log(2 * math.pi)
    # Around mu the mass may be so near 1 that only what is outside tells it from 1.
    outside = _upper_tail(-standard.start) + _upper_tail(standard.end)
    contains_most = (standard.alpha == 0) & (outside < 0.5)
    by_complement = torch.log1p(-torch.where(contains_most, outside, 0.0))
    return torch.where(contains_most, by_complement, by_integral)


def log_prob(x: Tensor, mu: Tensor, sigma: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Return the log density at `x`; -inf outside the interval, whose ends belong to it."""
    standard = _standardise(mu, sigma, lower, upper)
    inside = (lower <= x) & (x <= upper)
    offset = (torch.where(inside, x, standard.mode) - standard.mode) / standard.sigma
    log_scale = torch.log(_relative_mass(standard)) + torch.log(standard.sigma)
    return torch.where(inside, standard.log_ratio(offset) - log_scale, -torch.inf)


def moments(mu: Tensor, sigma: Tensor, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance of the truncated variable."""
    standard = _standardise(mu, sigma, lower, upper)
    offsets, weights = _nodes(standard)
    weights = weights / weights.sum(dim=0)
    mean = (weights * offsets).sum(dim=0)
    variance = (weights * (offsets - mean).square()).sum(dim=0)
    return standard.mode + standard.sigma * mean, standard.sigma.square() * variance


def quantile(uniforms: Tensor, mu: Tensor, sigma: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Return the quantile function at `uniforms`, which lie strictly between 0 and 1.

    It increases with the uniforms, stays inside the interval and is differentiable in `mu`,
    `sigma` and finite bounds, so that it serves as a reparametrised sampler.
    """
    standard = _standardise(mu, sigma, lower, upper)
    uniforms, alpha = torch.broadcast_tensors(uniforms, standard.alpha)
    is_right, is_left = alpha > 0, alpha < 0
    outside = is_right | is_left
    # In a tail measure along the decay: the mirrored tail is the same with 1 - u for u.
    shares = torch.where(is_left, 1 - uniforms, uniforms)
    tail_alpha = torch.where(outside, alpha.abs(), 1.0)
    distance = _tail_quantile(shares, tail_alpha, _relative_mass(standard))
    body = _body_quantile(uniforms, standard, outside)
    offset = torch.where(is_right, distance, torch.where(is_left, -distance, body))
    x = standard.mode + standard.sigma * offset
    return torch.minimum(torch.maximum(x, lower), upper)


def _standardise(mu: Tensor, sigma: Tensor, lower: Tensor, upper: Tensor) -> _Standard:
    mu, sigma, lower, upper = torch.broadcast_tensors(mu, sigma, lower, upper)
    if not (sigma > 0).all():
        raise ValueError(f"`sigma` must be positive, got {sigma.min().item()!r}")
    if not (lower < upper).all():
        worst = int((upper - lower).argmin())
        ends = f"{lower.flatten()[worst].item()!r} and {upper.flatten()[worst].item()!r}"
        raise ValueError(f"`lower` must be less than `upper`, got {ends}")
    mode = torch.minimum(torch.maximum(mu, lower), upper)
    # Finite stand-ins: no derivative may meet an infinity, not even one that is multiplied by 0.
    far = _FAR * sigma.detach()
    lower = torch.where(torch.isinf(lower), mode.detach() - far, lower)
    upper = torch.where(torch.isinf(upper), mode.detach() + far, upper)
    return _Standard(
        mode=mode,
        sigma=sigma,
        alpha=(mode - mu) / sigma,
        start=(lower - mode) / sigma,
        end=(upper - mode) / sigma,
    )


def _nodes(standard: _Standard) -> tuple[Tensor, Tensor]:
    """Return offsets from the mode (nodes, ...) and the relative mass at each."""
    alpha = standard.alpha.abs()
    reach = 2 * _LOG_DECAY / (alpha + torch.sqrt(alpha.square() + 2 * _LOG_DECAY))
    start = torch.maximum(standard.start, -reach)
    end = torch.minimum(standard.end, reach)
    points, weights = (
        torch.from_numpy(part).to(alpha).reshape(-1, *[1] * alpha.ndim)
        for part in np.polynomial.legendre.leggauss(_NUM_NODES)
    )
    offsets = 0.5 * ((1 - points) * start + (1 + points) * end)
    return offsets, 0.5 * (end - start) * weights * torch.exp(standard.log_ratio(offsets))


def _relative_mass(standard: _Standard) -> Tensor:
    """Return the interval's mass in units of sigma times the density at the mode."""
    return _nodes(standard)[1].sum(dim=0)


def _upper_tail(z: Tensor) -> Tensor:
    """Return the standard normal's probability above z."""
    probability: Tensor = 0.5 * erfc(z / math.sqrt(2))
    return probability


def _body_quantile(uniforms: Tensor, standard: _Standard, outside: Tensor) -> Tensor:
    """Return offsets from mu where it is inside, by inverting the nearer tail of the normal."""
    start = torch.where(outside, -1.0, standard.start)
    end = torch.where(outside, 1.0, standard.end)
    mass = 1 - _upper_tail(-start) - _upper_tail(end)
    below = _upper_tail(-start) + uniforms * mass
    above = _upper_tail(end) + (1 - uniforms) * mass
    in_lower_half = below < above
    distance: Tensor = ndtri(torch.where(in_lower_half, below, above))
    return torch.where(in_lower_half, distance, -distance)


def _tail_quantile(shares: Tensor, alpha: Tensor, relative_mass: Tensor) -> Tensor:
    """Return distances beyond alpha > 0 within which the given shares of the interval's mass lie.

    With Q the normal's survival function the distance t solves log Q(alpha + t) - log Q(alpha) =
    log(1 - shares · mass / Q(alpha)). The left side is concave and falls, so that Newton's method
    comes down to the root from any start above it; two such starts follow from the hazard's
    growth. The last step alone carries gradients: those of the implicit function.
    """
    # Rounding must not make the last share the whole tail, whose distance is infinite.
    below = (shares * relative_mass * hazard(alpha)).clamp(max=1 - torch.finfo(alpha.dtype).eps)
    log_survival = torch.log1p(-below)
    with torch.no_grad():
        exponent = -log_survival
        t = torch.minimum(
            exponent / hazard(alpha),
            2 * exponent / (alpha + torch.sqrt(alpha.square() + 2 * exponent)),
        )
        for _ in range(_NEWTON_STEPS):
            t = _newton_step(t, alpha, log_survival)
    return _newton_step(t, alpha, log_survival)


def _newton_step(t: Tensor, alpha: Tensor, log_survival: Tensor) -> Tensor:
    ratio = erfcx((alpha + t) / math.sqrt(2)) / erfcx(alpha / math.sqrt(2))
    error = torch.log(ratio) - t * (alpha + 0.5 * t) - log_survival
    return (t + error / hazard(alpha + t).detach()).clamp(min=0)
