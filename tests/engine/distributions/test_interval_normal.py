"""Truncated normals deep in a tail, in narrow intervals, mirrored, and in single precision."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from vnce_engine.distributions import interval_normal, truncated_normal
from vnce_engine.distributions.interval import IntervalNormal

INF = math.inf
# mu, sigma, lower, upper, mean, variance, log mass, with mpmath at 400 digits: for standardised
# ends a < b in the upper half (else mirrored), Q(z) = erfc(z / sqrt(2)) / 2, mass = Q(a) - Q(b),
#   m = (npdf(a) - npdf(b)) / mass;  mean = mu + sigma m
#   variance = sigma² (1 + (a npdf(a) - b npdf(b)) / mass - m²)
REFERENCE = [
    (0, 1, 0, INF, 0.7978845608028654, 0.3633802276324187, -0.6931471805599453),
    (-5, 1, 0, INF, 0.1865039671258421, 0.032696434617112226, -15.064998393988725),
    (-9, 1, 0, INF, 0.1085231050028688, 0.011514790654717133, -43.628149113332114),
    (-13, 1, 0, INF, 0.07603856060397945, 0.005716849449542053, -87.98971997102252),
    (-40, 1, 0, INF, 0.024968847207263722, 0.0006226683785913888, -804.6084420137538),
    (-100, 1, 0, INF, 0.009998000999260705, 9.994004994826346e-05, -5005.524208694205),
    (-3, 0.1, 0, INF, 0.0033259667433677043, 1.1037715118900912e-05, -454.32124395634315),
    (1e4, 1, 0, INF, 1e4, 1.0, 0.0),
    (0, 1, 10, 11, 10.09806837493302, 0.009420771902336495, -53.23131022558312),
    (0, 1, -11, -10, -10.09806837493302, 0.009420771902336495, -53.23131022558312),
    (1.35, 0.01, -20, -1, -1.0000425516505445, 1.810577401439717e-09, -27618.87854215427),
    (-40, 1, 0, 0.001, 0.00049666671399994, 8.332666414613398e-08, -807.8466273114112),
    (-1e-8, 1e-8, 0, INF, 5.2513527616098125e-09, 1.990976655703488e-17, -1.8410216450092636),
    (1.5, 3, 0, INF, 3.0274813015111004, 4.375578921267304, -0.3689464152886564),
    (0.3, 0.5, -0.2, INF, 0.44379998546958915, 0.15742157144415134, -0.17275377902344988),
    (14, 2, 31, INF, 31.229190640330344, 0.051230764769088374, -39.19739642821767),
    (0, 1, 38, INF, 38.02627946657587, 0.0006896597534662589, -726.5572160188201),
    (0, 1, -1, 2, 0.22963717909132897, 0.5197625392115339, -0.2001662943244626),
    (0, 1, -INF, INF, 0.0, 1.0, 0.0),
    (0, 1, -0.1, 50, 0.7353317485057806, 0.3857540447888533, -0.6165050101150263),
    (0, 1, -1e-8, 2e-8, 5e-09, 7.5e-17, -18.24100698848893),
    (0, 1, 3, 3.00000001, 3.000000005, 8.33333323204215e-18, -23.83961929823451),
    (0, 1, 99, 99.000001, 99.00000049999174, 8.333333287170018e-14, -4915.234498593285),
    (2, 0.5, 1.9, 2.4, 2.137928622799662, 0.020062423280448178, -1.0012923728575733),
    (0, 1, -7, 9, 9.134719380398927e-12, 0.9999999999360569, -1.2798126567454946e-12),
    (0, 1, -2.5, 0.01, -0.7661904255974405, 0.3169057769612575, -0.6975976874123146),
    (5, 2, -1e9, -3, -3.4512142889789423, 0.18669135358969052, -10.360101486527292),
]
POINTS = [point[:4] for point in REFERENCE]


def tensors(*values: object, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    return [torch.tensor(value, dtype=dtype) for value in values]


def mirrored(mu: float, sigma: float, lower: float, upper: float) -> tuple[float, ...]:
    return -mu, sigma, -upper, -lower


COLUMNS = tensors(*zip(*REFERENCE, strict=True))


@pytest.mark.parametrize("reference", REFERENCE)
def test_moments_and_mass_are_right_for_any_interval(reference):
    *point, mean, variance, log_mass = reference
    found_mean, found_variance = interval_normal.moments(*tensors(*point))
    found_log_mass = interval_normal.log_mass(*tensors(*point))

    mu, _, lower, upper = point
    mode = min(max(mu, lower), upper)
    # The nodes are right to 1e-14. Where the mode is not 0 the mean is rounded with it, and around
    # a mode inside the interval 48 terms of both signs, as large as the spread, cancel.
    rounding = 4e-16 * (abs(mode) + abs(mean)) + 48 * 1.1e-16 * math.sqrt(variance)
    assert found_mean.item() - mode == pytest.approx(mean - mode, rel=1e-12, abs=rounding)
    assert found_variance.item() == pytest.approx(variance, rel=1e-12, abs=0)
    assert found_log_mass.item() == pytest.approx(log_mass, rel=1e-12, abs=0)


@pytest.mark.parametrize("point", POINTS)
def test_mirrored_arguments_give_mirrored_results(point):
    here, there = tensors(*point), tensors(*mirrored(*point))
    uniforms = torch.linspace(1 / 64, 63 / 64, 63, dtype=torch.float64)  # exact, as are 1 - u

    # Sums over 48 nodes in the opposite order.
    for found, other in (
        (interval_normal.log_mass(*here), interval_normal.log_mass(*there)),
        (interval_normal.moments(*here)[1], interval_normal.moments(*there)[1]),
    ):
        assert found.item() == pytest.approx(other.item(), rel=1e-14, abs=0)
    draws = interval_normal.quantile(uniforms, *here)
    # 1 - u magnifies the sums' 1e-14 up to 64 times.
    torch.testing.assert_close(
        interval_normal.quantile(1 - uniforms, *there), -draws, rtol=64e-14, atol=0
    )


def test_arrays_give_the_scalars_answers():
    mean, variance = interval_normal.moments(*COLUMNS[:4])
    log_mass = interval_normal.log_mass(*COLUMNS[:4])
    for i, point in enumerate(POINTS):
        one_mean, one_variance = interval_normal.moments(*tensors(*point))
        assert mean[i].item() == pytest.approx(one_mean.item(), rel=1e-14, abs=1e-16)
        assert variance[i].item() == pytest.approx(one_variance.item(), rel=1e-14, abs=0)
        one_log_mass = interval_normal.log_mass(*tensors(*point))
        assert log_mass[i].item() == pytest.approx(one_log_mass.item(), rel=1e-14, abs=0)


def test_half_lines_are_those_of_the_closed_forms():
    mu, sigma = tensors([-80.0, -8.0, -1.0, 0.0, 1.0, 8.0], [2.0] * 6)
    lower, upper = tensors(0.0, INF)
    x, uniforms = tensors([0.0, 1e-3, 0.2, 1.0, 2.0, 9.0], [0.001, 0.1, 0.3, 0.5, 0.9, 0.999])

    for name, first in (("moments", ()), ("log_prob", (x,)), ("quantile", (uniforms,))):
        # The closed quantile in the far tail is right to 1e-7, everything else to 1e-10.
        torch.testing.assert_close(
            getattr(interval_normal, name)(*first, mu, sigma, lower, upper),
            getattr(truncated_normal, name)(*first, mu, sigma),
            rtol=1e-7 if name == "quantile" else 1e-10,
            atol=0 if name == "moments" else 1e-12,
        )


@pytest.mark.slow
@pytest.mark.parametrize("reference", REFERENCE)
def test_draws_lie_inside_with_the_right_mean(reference):
    *point, mean, variance, _ = reference
    draws = IntervalNormal(*point).sample(100_000, np.random.default_rng(6))

    assert np.isfinite(draws).all()
    assert point[2] <= draws.min()
    assert draws.max() <= point[3]
    # The draws of narrow intervals far from 0 are rounded to multiples of their size.
    standard_error = math.sqrt(variance / len(draws)) + abs(mean) * 2**-52
    assert abs(draws.mean() - mean) < 4 * standard_error


@pytest.mark.parametrize("point", POINTS)
def test_quantile_inverts_the_distribution_function(point):
    uniforms = torch.tensor([1e-9, 0.01, 0.3, 0.5, 0.9, 1 - 1e-6], dtype=torch.float64)
    mu, sigma, lower, upper = tensors(*point)
    x = interval_normal.quantile(uniforms, mu, sigma, lower, upper)
    assert (x.diff() >= 0).all()
    inner = (lower < x) & (x < upper)
    below = interval_normal.log_mass(mu, sigma, lower, x[inner])
    found = torch.exp(below - interval_normal.log_mass(mu, sigma, lower, upper))
    # What x is rounded by, a quarter of its last place, moves the probability by the density.
    density = torch.exp(interval_normal.log_prob(x[inner], mu, sigma, lower, upper))
    rounding = density * (x[inner].abs() + mu.abs() + sigma) * 2**-52
    # A difference of log masses of 5000 is right to 1e-12.
    assert ((found - uniforms[inner]).abs() < 2 * rounding + 4e-12).all()


@pytest.mark.parametrize(
    ("mu", "sigma", "lower", "upper"),
    [(0.3, 1.2, -0.5, 0.9), (-4.0, 0.7, 0.0, 2.0), (-40.0, 1.0, 0.0, 0.5), (9.0, 1.1, -1.0, 2.0)],
)
def test_gradients_are_those_of_finite_differences(mu, sigma, lower, upper):
    arguments = [t.requires_grad_() for t in tensors(mu, sigma, lower, upper)]
    x, uniforms = tensors(0.3 * lower + 0.7 * upper, [0.05, 0.5, 0.95])

    assert torch.autograd.gradcheck(interval_normal.moments, arguments)
    assert torch.autograd.gradcheck(interval_normal.log_mass, arguments)
    assert torch.autograd.gradcheck(lambda *p: interval_normal.log_prob(x, *p), arguments)
    assert torch.autograd.gradcheck(lambda *p: interval_normal.quantile(uniforms, *p), arguments)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("mu", "sigma", "lower", "upper", "num_draws"),
    [
        (2.0, 0.05, 0.0, 1.0, 100_000),
        (0.0, 0.001, -2.0, 2.0, 10**6),
        (-30.0, 1.0, 0.0, INF, 10**5),
    ],
)
def test_own_draws_have_a_density_and_gradients_in_either_precision(
    dtype, mu, sigma, lower, upper, num_draws
):
    generator = torch.Generator().manual_seed(9)
    parameters = [p.requires_grad_() for p in tensors(mu, sigma, lower, upper, dtype=dtype)]
    # Of 2^24 cells of (0, 1) the middles, so that both ends are left out in single precision too.
    cells = torch.randint(2**23, (num_draws,), generator=generator)
    uniforms = (cells.to(dtype) + 0.5) / 2**23
    draws = interval_normal.quantile(uniforms, *parameters)
    log_density = interval_normal.log_prob(draws, *parameters)
    (draws.mean() + log_density.mean()).backward()

    assert ((lower <= draws) & (draws <= upper)).all()
    assert torch.isfinite(log_density).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in parameters)
    # Ten sigma from mu: the chance of one such draw is below 1e-16.
    if sigma == 0.001:
        assert draws.abs().max() < 0.01


def test_the_largest_uniforms_give_finite_draws():
    uniforms = torch.tensor([5e-324, 2**-53, 1 - 2**-53], dtype=torch.float64)
    for point in POINTS:
        assert torch.isfinite(interval_normal.quantile(uniforms, *tensors(*point))).all()


def test_density_is_zero_outside_and_positive_at_the_ends():
    about = IntervalNormal(0, 1, 1, 2)
    assert about.log_density([0.999, 2.001]).tolist() == [-INF, -INF]
    assert np.isfinite(about.log_density([1, 2])).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0, 0, 1), "`sigma` must be positive, got 0.0"),
        ((0, math.nan, 0, 1), "`sigma` must be finite"),
        ((INF, 1, 0, 1), "`mu` must be finite"),
        (([0, 0], 1, [0, 2], [1, 2]), "`lower` must be less than `upper`, got 2.0 and 2.0"),
        ((0, 1, 0, math.nan), "`lower` must be less than `upper`, got 0.0 and nan"),
    ],
)
def test_arguments_that_are_no_distribution_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        IntervalNormal(*arguments).moments()
