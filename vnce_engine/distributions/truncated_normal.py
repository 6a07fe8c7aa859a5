"""The univariate normal distribution truncated to the half-line [0, inf).

Functions are elementwise over float64 tensors that broadcast together. `mu` and `sigma` belong
to the parent (untruncated) normal, so `mu` may lie far below zero. All of them depend on
alpha = -mu / sigma, the truncation point in standard units, and change formula where the direct
one would cancel: for |alpha| <= 100 moments and densities keep at least ten digits, quantiles
seven.

Sampling is `quantile` of uniforms. `fast_mean` and `fast_draws` are for passes over many cells:
they take the direct formula wherever it serves all of these.
"""

import math

import torch
from torch import Tensor
from torch.special import erfc, erfcx, log_ndtr, ndtri

# Below this alpha the hazard is under 1e-297, and erfcx, its denominator, is about to overflow.
_NEGLIGIBLE_HAZARD_ALPHA = -37.0
# From here on the continued fraction of Mills' ratio beats the cancelling difference of hazards:
# `_FRACTION_DEPTH` levels leave a relative error below 1e-14 in both moments.
_FRACTION_ALPHA = 20.0
_FRACTION_DEPTH = 16
# Beyond this alpha the tail mass nears the smallest float: quantiles work with its logarithm, and
# the direct formulas, which divide by it, end.
TAIL_ALPHA = 30.0
# Matching moments stops at this alpha: the variance of x is then 0.9998 of its squared mean, an
# exponential distribution for every practical purpose.
MAX_MATCHED_ALPHA = 100.0
# From this alpha on third and fourth moments are taken for those of an exponential variable: the
# relative difference is below 1e-3.
_EXPONENTIAL_ALPHA = 100.0
# Third and fourth moments about mu keep eleven digits of the central ones up to this alpha; those
# about zero do from here on, but for six where the mean is the cancelling difference of hazards.
_CENTRAL_ALPHA = 5.0
# Halvings that take a bracket of alpha as wide as 100 below the rounding error of 1.
_BISECTIONS = 60


def log_mass(mu: Tensor, sigma: Tensor) -> Tensor:
    """Return the log of the parent normal's probability of [0, inf)."""
    log_probability: Tensor = log_ndtr(mu / sigma)
    return log_probability


def log_integral(mu: Tensor, sigma: Tensor) -> Tensor:
    """Return the log of the integral of exp(-½ x² / sigma² + mu x / sigma²) over [0, inf)."""
    relative = log_mass(mu, sigma) + 0.5 * math.log(2 * math.pi) + sigma.log()
    return relative + 0.5 * (mu / sigma).square()


def log_prob(x: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    """Return the log density at `x`; -inf where `x` is negative."""
    # All that alpha alone decides is computed once, however many `x` share it.
    alpha, t = -mu / sigma, x / sigma
    # With alpha > 0 the two large squares, alpha² and (t + alpha)², cancel on paper:
    # log Phi(-alpha) = -alpha² / 2 + log(erfcx(alpha / sqrt 2) / 2).
    in_tail = alpha > 0
    tail_alpha = torch.where(in_tail, alpha, 0.0)
    tail = -t * (0.5 * t + tail_alpha) - torch.log(0.5 * erfcx(tail_alpha / math.sqrt(2)))
    body_alpha = torch.where(in_tail, 0.0, alpha)
    body = -0.5 * (t + body_alpha).square() - log_ndtr(-body_alpha)
    log_density = torch.where(in_tail, tail, body) - torch.log(sigma) - 0.5 * math.log(2 * math.pi)
    return torch.where(t < 0, -torch.inf, log_density)


def moments(mu: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance of the truncated variable.

    Source: the appendix of Rhodes and Gutmann (2019) on the noise distribution, with its two
    misprints put right: erfcx(x) = exp(x²) erfc(x), and the hazard is sqrt(2/pi) / erfcx.
    """
    mean, variance = _standard_moments(-mu / sigma)
    return sigma * mean, sigma.square() * variance


def hazard(alpha: Tensor) -> Tensor:
    """Return the mean of a standard normal truncated to t >= alpha, its density over its mass."""
    bounded = alpha.clamp(min=_NEGLIGIBLE_HAZARD_ALPHA) / math.sqrt(2)
    ratio: Tensor = math.sqrt(2 / math.pi) / erfcx(bounded)
    return ratio


def fast_mean(mu: Tensor, sigma: Tensor) -> Tensor:
    """Return the mean of the truncated variable, right to about alpha² * 1e-16 of itself.

    In a quarter of the time of `moments`, unless some alpha is so large that erfc underflows.
    """
    scaled_alpha = -math.sqrt(0.5) * mu / sigma
    if not bool((scaled_alpha <= math.sqrt(0.5) * TAIL_ALPHA).all()):
        return moments(mu, sigma)[0]
    inverse_mills: Tensor = torch.exp(-scaled_alpha.square()) / erfc(scaled_alpha)
    return (mu + sigma * math.sqrt(2 / math.pi) * inverse_mills).clamp(min=0)


def fast_draws(mu: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Return draws for sigma = 1, falling with the uniforms, and `log_mass`.

    The upper tail serves all uniforms: where it rounds to 1, seven standard deviations below the
    mean, a draw loses digits.
    """
    if not bool((mu >= -TAIL_ALPHA).all()):
        return quantile(uniforms, mu, torch.ones_like(mu)), log_ndtr(mu)
    mass = erfc(mu * -math.sqrt(0.5)).mul_(0.5)
    distance: Tensor = ndtri((1 - uniforms).mul_(mass))
    return torch.sub(mu, distance).clamp_(min=0), mass.log_()


def central_statistics(mu: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the mean, the variance, the third central moment and the squared deviation's variance.

    Deviations are those from the truncated variable's mean. About another point x, with
    g = mean - x, t and (t - x)² have the covariance third + 2 g variance, and (t - x)² the variance
    spread + 4 g third + 4 g² variance; about zero those would cancel where x is many sigma from it.
    """
    alpha = -mu / sigma
    in_tail = alpha > _CENTRAL_ALPHA
    standard = _central_in_body(torch.where(in_tail, 0.0, alpha))
    if in_tail.any():
        tail = _central_in_tail(torch.where(in_tail, alpha, _CENTRAL_ALPHA))
        standard = tuple(
            torch.where(in_tail, far, near) for far, near in zip(tail, standard, strict=True)
        )
    mean, variance, third, spread = standard
    return sigma * mean, sigma.square() * variance, sigma**3 * third, sigma**4 * spread


def quantile(uniforms: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    """Return the quantile function at `uniforms`, which lie strictly between 0 and 1.

    It increases with the uniforms, is finite and at least 0, and is differentiable in `mu` and
    `sigma`, so that it serves as a reparametrised sampler.
    """
    alpha = -mu / sigma
    in_tail = alpha > TAIL_ALPHA
    excess = _body_excess(uniforms, torch.where(in_tail, 0.0, alpha))
    if in_tail.any():
        tail_alpha = torch.where(in_tail, alpha, TAIL_ALPHA)
        excess = torch.where(in_tail, _tail_excess(uniforms, tail_alpha), excess)
    return sigma * excess.clamp(min=0)


def normal_scores(x: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    """Return the standard normal values with as much probability below them as `x` has.

    `quantile` of their probabilities is the inverse. Infinite where `x` is 0, or far in the tail.
    """
    log_survival = log_ndtr((mu - x) / sigma) - log_mass(mu, sigma)
    survival, below = log_survival.exp(), -torch.expm1(log_survival)
    # From the smaller of both probabilities, as their sum rounds to 1.
    scores: Tensor = torch.where(survival < below, -ndtri(survival), ndtri(below))
    return scores


def match_moments(mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """Return the `mu` and `sigma` whose truncated normal has this mean and variance.

    The squared coefficient of variation, variance / mean², determines alpha and grows with it
    from 0 to 1. At 0.9998 (alpha = `MAX_MATCHED_ALPHA`) and above, where no truncated normal
    may exist, alpha stays there and only the mean is matched.

    Raises `ValueError` unless every mean and variance is positive and finite. The result carries
    no gradient.
    """
    for name, moment in (("mean", mean), ("variance", variance)):
        bad = ~(torch.isfinite(moment) & (moment > 0))
        if bad.any():
            value = moment[bad].flatten()[0].item()
            raise ValueError(f"`{name}` must be positive and finite, got {value!r}")
    with torch.no_grad():
        squared_cv = variance / mean / mean
        # The variance never exceeds sigma², so that cv² <= 1 / alpha² where alpha < 0.
        lower = -squared_cv.rsqrt()
        upper = torch.full_like(squared_cv, MAX_MATCHED_ALPHA)
        lower = torch.minimum(lower, upper)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (lower + upper)
            standard_mean, standard_variance = _standard_moments(middle)
            too_low = standard_variance < squared_cv * standard_mean.square()
            lower = torch.where(too_low, middle, lower)
            upper = torch.where(too_low, upper, middle)
        alpha = upper
        sigma = mean / _standard_moments(alpha)[0]
    return -alpha * sigma, sigma


def _standard_moments(alpha: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and variance of t - alpha, for t standard normal truncated to t >= alpha."""
    in_tail = alpha > _FRACTION_ALPHA
    body_alpha = torch.where(in_tail, 0.0, alpha)
    own_hazard = hazard(body_alpha)
    mean = own_hazard - body_alpha
    variance = 1 - own_hazard * mean
    if in_tail.any():
        tail_mean, tail_variance = _tail_moments(torch.where(in_tail, alpha, _FRACTION_ALPHA))
        mean = torch.where(in_tail, tail_mean, mean)
        variance = torch.where(in_tail, tail_variance, variance)
    return mean, variance


def _central_in_body(alpha: Tensor) -> tuple[Tensor, ...]:
    """Return `central_statistics` for sigma = 1, from moments about mu."""
    own_hazard = hazard(alpha)
    mean = own_hazard - alpha
    variance = 1 - own_hazard * mean
    third = own_hazard * (mean * (own_hazard + mean) - 1)
    across = own_hazard * (1 - alpha * mean)
    of_square = 2 + alpha * across
    return mean, variance, third, of_square + 4 * own_hazard * (own_hazard * variance - across)


def _central_in_tail(alpha: Tensor) -> tuple[Tensor, ...]:
    """Return `central_statistics` for sigma = 1 and positive alpha, from moments about zero.

    Integrating by parts, E t^(k+1) = mu E t^k + k sigma² E t^(k-1) for k >= 1. Where alpha is so
    large that these cancel, t is exponential but for a share of 1 / alpha², and its moments known.
    """
    mean, variance = _standard_moments(alpha)
    second = variance + mean.square()
    across = 2 * mean - (mean + alpha) * second
    of_square = 2 * second - alpha * across
    third = across - 2 * mean * variance
    spread = of_square + 4 * mean * (mean * variance - across)
    is_exponential = alpha > _EXPONENTIAL_ALPHA
    third = torch.where(is_exponential, 2 * mean**3, third)
    return mean, variance, third, torch.where(is_exponential, 8 * mean**4, spread)


def _tail_moments(alpha: Tensor) -> tuple[Tensor, Tensor]:
    """Return `_standard_moments` by the continued fraction 1/(alpha + 2/(alpha + 3/(...))).

    That fraction is the hazard less alpha, the mean m. With r = 2/(alpha + 3/(...)), so that
    m = 1 / (alpha + r), the variance 1 - m (alpha + m) is m (r - m), free of cancellation.
    """
    remainder = _FRACTION_DEPTH / alpha
    for level in range(_FRACTION_DEPTH - 1, 1, -1):
        remainder = level / (alpha + remainder)
    mean = 1 / (alpha + remainder)
    return mean, mean * (remainder - mean)


def _body_excess(uniforms: Tensor, alpha: Tensor) -> Tensor:
    """Return t - alpha at the given quantiles, by inverting the nearer tail of the normal."""
    # Not torch.special.ndtr: it computes (1 + erf) / 2, which has no correct digit in the tail.
    mass = 0.5 * erfc(alpha / math.sqrt(2))
    below = 0.5 * erfc(-alpha / math.sqrt(2)) + uniforms * mass
    in_lower_half = below < 0.5
    nearer_tail = torch.where(in_lower_half, below, (1 - uniforms) * mass)
    distance: Tensor = ndtri(nearer_tail)
    return torch.where(in_lower_half, distance, -distance) - alpha


def _tail_excess(uniforms: Tensor, alpha: Tensor) -> Tensor:
    """Return t - alpha at the given quantiles where the tail beyond alpha has almost no mass.

    Starts from the root of exp(-(t² - alpha²) / 2) = 1 - uniforms and takes one Newton step on
    the log survival function, whose erfcx factors were left out. At that root the squares agree
    exactly, so that only the ratio of those factors remains. The relative error is below 1e-7.
    """
    exponential = -torch.log1p(-uniforms)
    t = torch.sqrt(alpha.square() + 2 * exponential)
    start = 2 * exponential / (t + alpha)
    scaled_tail: Tensor = erfcx(t / math.sqrt(2))
    log_survival_error = torch.log(scaled_tail / erfcx(alpha / math.sqrt(2)))
    hazard = math.sqrt(2 / math.pi) / scaled_tail
    return start + log_survival_error / hazard
