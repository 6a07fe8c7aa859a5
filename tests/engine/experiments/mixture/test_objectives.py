"""The paper's theorems on the mixture of two normals, where every sum over z is exact."""

import math

import pytest
import torch
from torch import Tensor

from vnce_engine.experiments.mixture import em, objectives
from vnce_engine.experiments.mixture.data import MixtureData, draw_normalised, draw_unnormalised
from vnce_engine.experiments.mixture.estimation import estimate, random_starts
from vnce_engine.experiments.mixture.methods import UNNORMALISED
from vnce_engine.experiments.mixture.model import log_bernoulli, log_joint, log_noise, log_posterior

NUS = (0.1, 1.0, 10.0)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(5)


@pytest.fixture
def data(generator: torch.Generator) -> MixtureData:
    """Return samples and noise of three mixtures."""
    theta = torch.tensor([2.0, 3.0, 5.0], dtype=torch.float64)
    return draw_normalised(theta, 400, 400, generator)


@pytest.fixture
def theta() -> Tensor:
    """Return a theta for each, away from its truth."""
    return torch.tensor([1.5, 4.0, 2.5], dtype=torch.float64)


@pytest.fixture
def log_q(data: MixtureData, generator: torch.Generator) -> Tensor:
    """Return a q of the Bernoulli family that is no posterior."""
    weights = 0.5 * torch.randn(3, 3, dtype=torch.float64, generator=generator)
    return log_bernoulli(weights, data.x)


def class_probability(theta: Tensor, data: MixtureData, nu: float) -> Tensor:
    """Return the paper's kappa_x = phi(x) / (phi(x) + nu p_y(x))."""
    log_ratio = log_joint(theta, data.x).logsumexp(dim=0) - log_noise(data.noise_scale, data.x)
    return torch.sigmoid(log_ratio - math.log(nu))


def f_divergence(log_p: Tensor, log_q: Tensor, kappa: Tensor) -> Tensor:
    """Return the mean over x of D_f(p(z|x) || q(z|x)), f(u) = log(kappa + (1 - kappa) / u)."""
    values = torch.log(kappa + (1 - kappa) * (log_q - log_p).exp())
    return (log_q.exp() * values).sum(dim=0).mean(dim=-1)


def kullback_leibler(log_p: Tensor, log_q: Tensor) -> Tensor:
    return (log_p.exp() * (log_p - log_q)).sum(dim=0).mean(dim=-1)


@pytest.mark.parametrize("nu", NUS)
def test_lemma_1_the_gap_is_the_expected_f_divergence(
    data: MixtureData, theta: Tensor, log_q: Tensor, nu: float
) -> None:
    gap = objectives.nce(log_joint, theta, data, nu) - objectives.vnce(
        log_joint, theta, log_q, data, nu
    )
    log_p = log_posterior(log_joint(theta, data.x))
    expected = f_divergence(log_p, log_q, class_probability(theta, data, nu))
    torch.testing.assert_close(gap, expected, rtol=1e-10, atol=1e-12)
    assert (gap > 1e-4).all()  # far more than rounding, so that this says something


@pytest.mark.parametrize("nu", NUS)
def test_lemma_1_the_gap_is_the_difference_of_two_kullback_leibler_divergences(
    data: MixtureData, theta: Tensor, log_q: Tensor, nu: float
) -> None:
    gap = objectives.nce(log_joint, theta, data, nu) - objectives.vnce(
        log_joint, theta, log_q, data, nu
    )
    log_p = log_posterior(log_joint(theta, data.x))
    kappa = class_probability(theta, data, nu)
    mixed = torch.log(kappa * log_p.exp() + (1 - kappa) * log_q.exp())
    expected = kullback_leibler(log_q, log_p) - kullback_leibler(log_q, mixed)
    torch.testing.assert_close(gap, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("nu", NUS)
def test_theorem_1_the_bound_is_tight_at_the_posterior_and_only_there(
    data: MixtureData, theta: Tensor, log_q: Tensor, nu: float
) -> None:
    nce = objectives.nce(log_joint, theta, data, nu)
    log_p = em.e_step(theta, data)
    torch.testing.assert_close(
        objectives.vnce(log_joint, theta, log_p, data, nu), nce, rtol=1e-12, atol=0
    )
    for share in (1e-3, 0.1, 1.0):
        mixed = torch.log((1 - share) * log_p.exp() + share * log_q.exp())
        assert (objectives.vnce(log_joint, theta, mixed, data, nu) < nce - 1e-10).all()


def test_theorem_1_the_gap_tends_to_the_kullback_leibler_divergence_as_nu_grows(
    data: MixtureData, theta: Tensor, log_q: Tensor
) -> None:
    limit = kullback_leibler(log_q, em.e_step(theta, data))

    def excess(nu: float) -> Tensor:
        gap = objectives.nce(log_joint, theta, data, nu) - objectives.vnce(
            log_joint, theta, log_q, data, nu
        )
        return limit - gap

    # The rest is KL(q || kappa p + (1 - kappa) q), to leading order kappa²/2 times the chi-square
    # divergence: relatively, what follows is of order kappa p / q. In the first mixture p / q is
    # too large in the tails for these nu.
    log_p = em.e_step(theta, data)
    chi_square = (log_q.exp() * torch.expm1(log_p - log_q).square()).sum(dim=0)
    kappa = class_probability(theta, data, 1e4)
    leading = 0.5 * (kappa.square() * chi_square).mean(dim=-1)
    torch.testing.assert_close(excess(1e4)[1:], leading[1:], rtol=1e-2, atol=0)
    assert (excess(1e2) > excess(1e3)).all()
    assert (excess(1e3) > excess(1e4)).all()
    assert (excess(1e6) < 1e-7 * limit).all()


def test_theorem_2_the_largest_vnce_is_the_largest_nce(generator: torch.Generator) -> None:
    truth = torch.tensor([2.5, 4.0, 5.5], dtype=torch.float64)
    data = draw_unnormalised(truth, 500, 500, generator)
    starts = random_starts(5 * len(truth), (-5.0, 5.0), generator).view(5, len(truth), -1)
    by_vnce = estimate(UNNORMALISED["VNCE"], data, starts, truth)
    by_nce = estimate(UNNORMALISED["NCE"], data, starts, truth)
    # Both stop where every derivative is below 1e-7; at these sample sizes curvatures are above
    # 1e-3 a nat, which leaves 1e-4 in the parameters.
    torch.testing.assert_close(by_vnce.theta, by_nce.theta, rtol=0, atol=1e-4)
    torch.testing.assert_close(by_vnce.log_partition, by_nce.log_partition, rtol=0, atol=1e-4)


@pytest.mark.parametrize("nu", NUS)
def test_corollary_1_the_nce_objective_never_falls_in_em(
    nu: float, generator: torch.Generator
) -> None:
    starts = torch.exp(torch.empty(40, dtype=torch.float64).uniform_(-1, 3, generator=generator))
    truth = torch.full_like(starts, 4.0)
    data = draw_normalised(truth, 200, 200, generator)
    path = [starts]
    for _ in range(8):
        path.append(em.m_step(path[-1], em.e_step(path[-1], data), data, nu))
    values = torch.stack([objectives.nce(log_joint, theta, data, nu) for theta in path])
    assert (values.diff(dim=0) >= -1e-10).all()
    assert (values[-1] - values[0] > 0.01).any()  # there was something to climb


def test_the_noise_term_needs_no_variance_when_draws_come_from_the_posterior(
    data: MixtureData, theta: Tensor
) -> None:
    log_density = log_joint(theta, data.y)
    weights = log_density - log_posterior(log_density)
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(weights[0], log_density.logsumexp(dim=0), rtol=1e-12, atol=1e-12)


def test_equal_densities_give_the_objective_of_a_coin() -> None:
    x = torch.linspace(-1, 1, 4, dtype=torch.float64).unsqueeze(0)
    data = MixtureData(x, x, torch.ones(1, dtype=torch.float64))

    def density(scale: Tensor, x: Tensor) -> Tensor:
        return log_noise(scale, x).expand(2, -1, -1) - math.log(2)

    value = objectives.nce(density, data.noise_scale, data, nu=1.0)
    torch.testing.assert_close(value, torch.tensor([-2 * math.log(2)], dtype=torch.float64))
