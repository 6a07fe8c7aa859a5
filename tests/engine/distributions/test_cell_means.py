"""Means of a missing cell on the data's own scale, against integration in many digits."""

import math

import mpmath
import numpy as np
import pytest
import torch

from vnce_engine.data.transforms import Transform
from vnce_engine.distributions.cell_means import CellMeans, ClampedCells, TruncatedCells

# mu / sigma from the far tail to where truncation means nothing.
RATIOS = (-1e6, -1e3, -50.0, -20.0, -8.0, -3.01, -2.99, -1.0, 0.0, 0.3, 2.0, 10.0, 50.0, 1e3)
SIGMAS = (1e-6, 0.01, 0.5, 3.0)
# All but an exponential beyond the largest number.
CASES = [
    (ratio, sigma, transform)
    for ratio in RATIOS
    for sigma in SIGMAS
    for transform in Transform
    if transform is not Transform.LOG1P or ratio * sigma < 600
]
INVERSES = {
    Transform.NONE: lambda y: y,
    Transform.SQRT: lambda y: y**2,
    Transform.CBRT: lambda y: y**3,
    Transform.LOG1P: mpmath.expm1,
}


def exact(ratio: float, sigma: float, transform: Transform) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Return the mean of the inverse over the truncated normal, and the normal's mass above 0.

    By formulas that cancel, in so many digits that it does not matter; 1e6 squared, thrice, takes
    36 of them, and 1e6 squared is the exponent of the tail.
    """
    with mpmath.workdps(120):
        alpha, s = -mpmath.mpf(ratio), mpmath.mpf(sigma)

        def tail(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.erfc(x / mpmath.sqrt(2)) / 2

        density = mpmath.exp(-(alpha**2) / 2) / mpmath.sqrt(2 * mpmath.pi)
        first = density / tail(alpha) - alpha
        second = 1 - alpha * first
        powers = {1: first, 2: second, 3: 2 * first - alpha * second}
        match transform:
            case Transform.LOG1P:
                mean = mpmath.exp(s * (s / 2 - alpha)) * tail(alpha - s) / tail(alpha) - 1
            case _:
                exponent = {Transform.NONE: 1, Transform.SQRT: 2, Transform.CBRT: 3}[transform]
                mean = s**exponent * powers[exponent]
        return mean, tail(alpha)


def integral(ratio: float, sigma: float, transform: Transform) -> mpmath.mpf:
    """Return the first of `exact` by numerical integration."""
    alpha, inverse = -mpmath.mpf(ratio), INVERSES[transform]
    width = 1 / (1 + max(alpha, 0))
    modes = [mpmath.mpf(0), max(-alpha, 0), max(-alpha + sigma, 0)]
    steps = {mode + width * step for mode in modes for step in (-9, -3, 0, 3, 9, 40)}
    points = sorted(step for step in steps if step >= 0)

    def weight(e: mpmath.mpf) -> mpmath.mpf:
        return mpmath.exp(-e * (e / 2 + alpha))

    mass = mpmath.quad(weight, points)
    return mpmath.quad(lambda e: inverse(sigma * e) * weight(e), points) / mass


def mean_of(cells: CellMeans, transform: Transform) -> float:
    return float(transform.mean_before(cells))


def tensors(ratio: float, sigma: float) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(ratio * sigma, dtype=torch.float64), torch.tensor(
        sigma, dtype=torch.float64
    )


@pytest.mark.slow
@pytest.mark.parametrize(("ratio", "sigma", "transform"), CASES)
def test_means_before_a_transform_are_the_integrals(
    ratio: float, sigma: float, transform: Transform
) -> None:
    mean, above = exact(ratio, sigma, transform)
    mu, spread = tensors(ratio, sigma)
    # The exponent of an exponential, which may be hundreds, is itself rounded.
    exponent = abs(ratio * sigma) if transform is Transform.LOG1P and ratio > 0 else 1.0
    tolerance = 2e-12 * max(1.0, exponent)
    assert mean_of(TruncatedCells(mu, spread), transform) == pytest.approx(
        float(mean), rel=tolerance, abs=0
    )
    # Where no transform bounds a normal, its mean is its own.
    clamped = ratio * sigma if transform is Transform.NONE else float(mean * above)
    # Of a probability like exp(-1250) the exponent is rounded, too.
    rounded = max(1.0, ratio**2 / 2) if ratio < 0 else exponent
    assert mean_of(ClampedCells(mu, spread), transform) == pytest.approx(
        clamped, rel=2e-12 * max(1.0, rounded), abs=0 if ratio > -30 else 1e-300
    )


@pytest.mark.slow
@pytest.mark.parametrize("transform", list(Transform))
@pytest.mark.parametrize(("ratio", "sigma"), [(-20.0, 0.5), (-1.0, 3.0), (0.3, 0.01), (10.0, 0.5)])
def test_the_reference_is_the_numerical_integral(
    ratio: float, sigma: float, transform: Transform
) -> None:
    mean, _ = exact(ratio, sigma, transform)
    assert float(integral(ratio, sigma, transform) / mean) == pytest.approx(1, abs=1e-11)


def test_an_exponential_of_wide_tails_is_right_where_its_tails_change_sides() -> None:
    # alpha > 0 and sigma > alpha: the tilted normal has most of its mass above 0 again.
    for ratio, sigma in ((-50.0, 60.0), (-5.0, 5.0), (-1e-3, 2.0), (-3.0, 30.0)):
        mean, _ = exact(ratio, sigma, Transform.LOG1P)
        got = mean_of(TruncatedCells(*tensors(ratio, sigma)), Transform.LOG1P)
        assert got == pytest.approx(float(mean), rel=1e-11)


def test_a_mean_beyond_the_largest_number_is_infinite() -> None:
    assert math.isinf(mean_of(TruncatedCells(*tensors(1.0, 1e3)), Transform.LOG1P))


@pytest.mark.parametrize("ratio", [-30.0, -3.0, 0.0, 2.0])
def test_the_mean_of_any_function_is_near_that_of_a_power(ratio: float) -> None:
    mu, sigma = torch.tensor([0.5 * ratio]).double(), torch.tensor([0.5]).double()
    truncated = TruncatedCells(mu, sigma)
    # Quantiles have no Taylor series at the end of a tail, where quadrature is the least right.
    assert float(truncated.expectation(lambda y: y**3)) == pytest.approx(
        float(truncated.power(3)), rel=1e-4
    )
    normal = ClampedCells(mu, sigma).expectation(lambda y: y**4)
    assert float(normal) == pytest.approx(0.5**4 * (ratio**4 + 6 * ratio**2 + 3), rel=1e-12)


@pytest.mark.parametrize("transform", list(Transform))
def test_many_cells_are_as_each_alone(transform: Transform) -> None:
    mu = torch.linspace(-30, 30, 25, dtype=torch.float64)
    sigma = torch.tensor(0.7, dtype=torch.float64)
    together = transform.mean_before(TruncatedCells(mu, sigma.expand_as(mu)))
    alone = [mean_of(TruncatedCells(value, sigma), transform) for value in mu]
    np.testing.assert_allclose(together, alone, rtol=1e-14)
