import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import integrate, stats
from torch import Tensor

from vnce_engine.distributions import truncated_normal
from vnce_engine.distributions.truncated_normal import MAX_MATCHED_ALPHA

# mu, sigma, mean, variance, log mass, with mpmath at 400 digits:
#   a = -mu / sigma; mass = erfc(a / sqrt(2)) / 2; hazard = npdf(a) / mass
#   mean = sigma * (hazard - a); variance = sigma**2 * (1 - hazard * (hazard - a))
REFERENCE = [
    (100, 1, 100.0, 1.0, 0.0),
    (45, 1.5, 45.0, 2.25, -4.9067139271481871e-198),
    (3, 0.5, 3.0000000030379414, 0.24999999088617571, -9.8658764552437573e-10),
    (0, 1, 0.79788456080286536, 0.36338022763241866, -0.69314718055994531),
    (-1, 1, 0.52513527616098121, 0.19909766557034879, -1.8410216450092635),
    (-2e-09, 1e-09, 3.7321553282284089e-10, 1.1427910041408127e-19, -3.7831843336820319),
    (-3, 0.5, 0.079241302272299459, 0.0059969091972916927, -20.736768949974706),
    (-12, 1, 0.08221417525428433, 0.0066707263358458643, -75.410673001568796),
    (-39.8, 2, 0.10000122860403967, 0.0099508558369038333, -201.9171677073326),
    (-40.2, 2, 0.099015900155087073, 0.009756665281977228, -205.92711840194825),
    (-7e9, 2e8, 5704994.1193375741, 32494206735305.308, -616.97510126192251),
    (-60, 1, 0.01665742024112493, 0.00027731588341476923, -1805.0135606805671),
    (-100, 1, 0.0099980009992607052, 9.994004994826345e-5, -5005.5242086942051),
]
ALPHAS = [-100.0, -40.0, -8.0, -1.0, 0.0, 1.0, 5.0, 19.9, 29.9, 30.1, 60.0, 100.0]
MU, SIGMA, MEAN, VARIANCE, LOG_MASS = (
    torch.tensor(column, dtype=torch.float64) for column in zip(*REFERENCE, strict=True)
)


def scalar(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


@pytest.mark.parametrize(("mu", "sigma", "mean", "variance", "log_mass"), REFERENCE)
def test_moments_and_mass_are_right_into_the_far_tail(mu, sigma, mean, variance, log_mass):
    found_mean, found_variance = truncated_normal.moments(scalar(mu), scalar(sigma))
    found_log_mass = truncated_normal.log_mass(scalar(mu), scalar(sigma))

    # The worst formula, 1 - hazard * mean at alpha = 20, loses five of its sixteen digits.
    assert found_mean.item() == pytest.approx(mean, rel=1e-12, abs=0)
    assert found_variance.item() == pytest.approx(variance, rel=1e-10, abs=0)
    assert found_log_mass.item() == pytest.approx(log_mass, rel=1e-12, abs=0)


def test_arrays_give_the_scalars_answers():
    mean, variance = truncated_normal.moments(MU, SIGMA)
    log_mass = truncated_normal.log_mass(MU, SIGMA)

    for i, (mu, sigma, *_) in enumerate(REFERENCE):
        one_mean, one_variance = truncated_normal.moments(scalar(mu), scalar(sigma))
        assert mean[i].item() == pytest.approx(one_mean.item(), rel=1e-14, abs=0)
        assert variance[i].item() == pytest.approx(one_variance.item(), rel=1e-14, abs=0)
        one_log_mass = truncated_normal.log_mass(scalar(mu), scalar(sigma))
        assert log_mass[i].item() == pytest.approx(one_log_mass.item(), rel=1e-14, abs=0)


def test_moments_are_continuous_where_the_formula_changes():
    alpha = scalar(20.0)
    before = truncated_normal.moments(-alpha, scalar(1.0))
    after = truncated_normal.moments(-torch.nextafter(alpha, scalar(21.0)), scalar(1.0))

    assert before[0].item() == pytest.approx(after[0].item(), rel=1e-12)
    assert before[1].item() == pytest.approx(after[1].item(), rel=1e-10)


@pytest.mark.parametrize("alpha", [-1000.0, *ALPHAS, 101.0, 1e4])
def test_central_statistics_are_those_of_the_density(alpha: float) -> None:
    mu, sigma = scalar(-2 * alpha), scalar(2.0)
    mean, variance = (m.item() for m in truncated_normal.moments(mu, sigma))
    spread = math.sqrt(variance)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    low, high = max(0.0, mean - 12 * spread), mean + 60 * spread
    x = low + 0.5 * (high - low) * (nodes + 1)
    density = truncated_normal.log_prob(torch.from_numpy(x), mu, sigma).exp().numpy() * weights
    density /= density.sum()
    apart = x - density @ x
    square = apart**2 - density @ apart**2
    expected = [density @ apart**2, density @ (apart * square), density @ square**2]

    _, *found = truncated_normal.central_statistics(mu, sigma)
    # Four moments of an exponential variable are out by up to 40 / alpha². Distances from a mean
    # that is as many spreads away are known to so many digits fewer.
    relative = 1e-6 if alpha <= 100 else 40 / alpha**2
    rounding = 1e-15 * max(mean / spread, 1)
    for power, value, wanted in zip((2, 3, 4), found, expected, strict=True):
        allowed = max(relative * float(wanted), 10 * rounding * spread**power)
        assert value.item() == pytest.approx(float(wanted), abs=allowed)


@pytest.mark.parametrize("alpha", [5.0, 20.0, 100.0])
def test_central_statistics_are_continuous_where_the_formula_changes(alpha: float) -> None:
    before, after = (
        truncated_normal.central_statistics(scalar(-side), scalar(1.0))
        for side in (alpha, np.nextafter(alpha, 200.0))
    )
    # At 100 an exponential variable takes over, which is out by 10 / alpha².
    relative = 1e-3 if alpha == 100 else 1e-6
    for one, other in zip(before, after, strict=True):
        assert one.item() == pytest.approx(other.item(), rel=relative)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_density_integrates_to_one_with_the_stated_moments(alpha):
    mu, sigma = scalar(-2 * alpha), scalar(2.0)
    mean, variance = (m.item() for m in truncated_normal.moments(mu, sigma))
    spread = math.sqrt(variance)

    # 60 spreads hold all but 1e-26 of even an exponential distribution.
    limits = max(0.0, mean - 20 * spread), mean + 60 * spread

    def moment(power: int) -> float:
        def integrand(x: NDArray[np.float64]) -> NDArray[np.float64]:
            density = truncated_normal.log_prob(torch.from_numpy(x), mu, sigma).exp()
            return x**power * density.numpy()

        return float(integrate.fixed_quad(integrand, *limits, n=500)[0])

    assert moment(0) == pytest.approx(1, rel=1e-10)
    assert moment(1) == pytest.approx(mean, rel=1e-10)


def test_log_density_agrees_with_scipy_and_is_minus_infinity_below_zero():
    mu, sigma = torch.tensor([[-9.0], [-0.5], [3.0]], dtype=torch.float64), scalar(1.5)
    x = torch.linspace(0.0, 6.0, 7, dtype=torch.float64)
    expected = stats.truncnorm.logpdf(x, -mu / sigma, math.inf, loc=mu, scale=sigma)

    found = truncated_normal.log_prob(x, mu, sigma)

    assert found.numpy() == pytest.approx(expected, rel=1e-9)
    assert (truncated_normal.log_prob(-x[1:], mu, sigma) == -math.inf).all()


@pytest.mark.parametrize("alpha", ALPHAS)
def test_quantile_inverts_the_distribution_function(alpha):
    mu, sigma = scalar(-3 * alpha), scalar(3.0)
    uniforms = torch.tensor([1e-3, 0.1, 0.5, 0.9, 0.999], dtype=torch.float64)

    x = truncated_normal.quantile(uniforms, mu, sigma)

    # P(X > x) = mass of [x, inf) over mass of [0, inf), both of which are tested above. Logs of
    # up to 5,000 have an absolute rounding error near 1e-12; the Newton step is good to 1e-7.
    log_survival = truncated_normal.log_mass(mu - x, sigma) - truncated_normal.log_mass(mu, sigma)
    assert log_survival.exp().numpy() == pytest.approx((1 - uniforms).numpy(), rel=2e-7)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_quantile_is_monotone_finite_and_never_negative(alpha):
    extreme = [1e-300, 1e-20, 2.0**-54, 1 - 2.0**-40, 1 - 2.0**-53]
    uniforms = torch.cat([torch.tensor(extreme), torch.linspace(0.001, 0.999, 2001)]).double()
    uniforms = uniforms[uniforms < 1].sort().values

    x = truncated_normal.quantile(uniforms, scalar(-alpha), scalar(1.0))

    assert torch.isfinite(x).all()
    assert (x >= 0).all()
    assert (x.diff() >= 0).all()
    assert torch.isfinite(truncated_normal.log_prob(x, scalar(-alpha), scalar(1.0))).all()


def test_draws_have_the_exact_mean_and_variance_in_body_and_tail():
    n = 100_000
    generator = torch.Generator().manual_seed(1)
    uniforms = torch.rand(n, 1, generator=generator, dtype=torch.float64).clamp(min=2.0**-54)

    draws = truncated_normal.quantile(uniforms, MU, SIGMA)

    standard_error = (VARIANCE / n).sqrt()
    assert ((draws.mean(dim=0) - MEAN).abs() < 5 * standard_error).all()
    # The variance of a squared deviation is (kurtosis - 1) variance²; kurtosis is at most 9, the
    # exponential's.
    assert ((draws.var(dim=0) / VARIANCE - 1).abs() < 5 * math.sqrt(8 / n)).all()


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_matched_moments_are_the_moments_asked_for(scale):
    squared_cv = torch.cat([torch.logspace(-12, -1, 23), torch.linspace(0.1, 0.9997, 40)]).double()
    mean = torch.full_like(squared_cv, scale)
    variance = squared_cv * scale**2

    found_mean, found_variance = truncated_normal.moments(
        *truncated_normal.match_moments(mean, variance)
    )

    assert found_mean.numpy() == pytest.approx(mean.numpy(), rel=1e-10, abs=0)
    assert found_variance.numpy() == pytest.approx(variance.numpy(), rel=1e-10, abs=0)


@pytest.mark.parametrize("squared_cv", [1.0, 3.0, 1e6])
def test_matching_an_impossible_variance_keeps_the_mean_and_stops_in_the_tail(squared_cv):
    mu, sigma = truncated_normal.match_moments(scalar(2.0), scalar(4 * squared_cv))

    assert (-mu / sigma).item() == pytest.approx(MAX_MATCHED_ALPHA)
    assert truncated_normal.moments(mu, sigma)[0].item() == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["mean", "variance"])
def test_moments_that_are_not_positive_and_finite_are_refused_by_name(name, bad):
    moments = {"mean": scalar(1.0), "variance": scalar(1.0), name: scalar(bad)}

    with pytest.raises(ValueError, match=f"`{name}` must be positive and finite"):
        truncated_normal.match_moments(**moments)


def test_gradients_agree_with_finite_differences_on_both_sides_of_every_formula_change():
    mu = torch.tensor([-60, -32, -25, -2, 0, 3, 9], dtype=torch.float64, requires_grad=True)
    sigma = torch.tensor(1.1, dtype=torch.float64, requires_grad=True)
    uniforms = torch.linspace(0.1, 0.9, 7, dtype=torch.float64)

    assert torch.autograd.gradcheck(truncated_normal.log_mass, (mu, sigma))
    assert torch.autograd.gradcheck(truncated_normal.moments, (mu, sigma))
    assert torch.autograd.gradcheck(
        lambda m, s: truncated_normal.quantile(uniforms, m, s), (mu, sigma)
    )
    assert torch.autograd.gradcheck(
        lambda m, s: truncated_normal.log_prob(uniforms, m, s), (mu, sigma)
    )


def test_gradients_are_finite_where_the_truncation_is_out_of_reach():
    mu = torch.tensor([40.0, 200.0, 1e5], dtype=torch.float64, requires_grad=True)
    sigma = torch.ones(3, dtype=torch.float64, requires_grad=True)
    x = truncated_normal.quantile(torch.full_like(mu, 0.3), mu, sigma)
    mean, variance = truncated_normal.moments(mu, sigma)
    total = (x + mean + variance + truncated_normal.log_prob(mu + 1, mu, sigma)).sum()

    for gradient in torch.autograd.grad(total, (mu, sigma)):
        assert torch.isfinite(gradient).all()


def test_fast_means_are_the_same_beside_one_in_the_far_tail() -> None:
    # At alpha = 20 the exponential of alpha²/2 = 200 is right to three roundings of that argument,
    # and the hazard's difference from alpha, 1 / alpha, to alpha² = 400 times as many.
    mu = torch.linspace(-20.0, 20.0, 81, dtype=torch.float64)
    one = torch.ones(82, dtype=torch.float64)
    means = truncated_normal.fast_mean(mu, one[:-1])
    with_far = truncated_normal.fast_mean(torch.cat([mu, mu.new_tensor([-1e3])]), one)
    rounding = 400 * 3 * 200 * torch.finfo(torch.float64).eps
    assert torch.allclose(with_far[:-1], means, rtol=rounding, atol=0)
    # Beyond, nearly the mean of an exponential of rate alpha: 1/alpha, less two parts in alpha².
    assert float(with_far[-1]) == pytest.approx(1e-3, rel=3e-6)


def test_a_fast_mean_without_truncation_is_that_of_the_normal() -> None:
    mu = torch.tensor([80.0], dtype=torch.float64)
    assert truncated_normal.fast_mean(mu, torch.ones_like(mu)).tolist() == [80.0]


@pytest.mark.parametrize(("mu", "sigma"), [(8.0, 1.0), (0.0, 1.0), (-3.0, 1.0), (-200.0, 2.0)])
def test_normal_scores_undo_the_quantiles_of_their_probabilities(mu, sigma):
    scores = torch.linspace(-5, 5, 101, dtype=torch.float64)
    at = torch.tensor(mu, dtype=torch.float64), torch.tensor(sigma, dtype=torch.float64)

    x = truncated_normal.quantile(torch.special.ndtr(scores), *at)

    # A probability near 1 has lost what its distance from 1 is known by.
    found = truncated_normal.normal_scores(x, *at)
    assert found.numpy() == pytest.approx(scores.numpy(), abs=1e-6)
