"""What the VNCE objective must equal, bound or ignore, with expectations taken by quadrature."""

import math

import numpy as np
import pytest
import torch

from vnce_engine import TruncatedGaussianNCE, TruncatedGaussianVNCE
from vnce_engine.contrastive.noise import ProductTruncatedNormal
from vnce_engine.contrastive.objective import vnce_objective
from vnce_engine.distributions import truncated_normal
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.simulate import ring_precision, sample_truncated_gaussian

NU = 10.0
MODEL = QuadraticModel(
    precision=torch.tensor([[1.5, 0.6], [0.6, 0.9]], dtype=torch.float64),
    linear=torch.tensor([0.4, 0.7], dtype=torch.float64),
    log_partition=torch.tensor(0.3, dtype=torch.float64),
)
NOISE = ProductTruncatedNormal(
    mu=torch.tensor([0.2, 0.5], dtype=torch.float64),
    sigma=torch.tensor([1.0, 1.3], dtype=torch.float64),
)
# The first coordinate of each row is observed, the second is missing.
OBSERVED = torch.linspace(0.0, 4.0, 9, dtype=torch.float64)
# Simpson's rule on [0, 20]: the densities below fall under 1e-50 there, and the step of 0.002
# leaves an error far below 1e-10 for functions that vary on a scale of 0.3 and more.
NODES = torch.linspace(0.0, 20.0, 10_001, dtype=torch.float64)
WEIGHTS = torch.tensor([1.0, *[4.0, 2.0] * 4999, 4.0, 1.0], dtype=torch.float64) * (0.002 / 3)
EXACT = 1e-10


def log_joint() -> torch.Tensor:
    """Return log phi (nodes, rows) of every observed value with every node."""
    pairs = torch.stack(torch.broadcast_tensors(OBSERVED, NODES.unsqueeze(1)), dim=-1)
    return MODEL.log_phi(pairs)


def log_noise() -> torch.Tensor:
    """Return the log marginal noise density (rows,) of the observed values."""
    rows = torch.stack([OBSERVED, torch.zeros_like(OBSERVED)], dim=1)
    return NOISE.log_prob(rows, torch.tensor([True, False]).expand(len(rows), 2))


def nce_log_ratio() -> torch.Tensor:
    """Return log(phi(x_o) / p_noise(x_o)) (rows,), the missing coordinate integrated out."""
    return torch.logsumexp(log_joint() + WEIGHTS.log().unsqueeze(1), dim=0) - log_noise()


def log_ratios(mu: torch.Tensor, sigma: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return VNCE's log ratios (nodes, rows) and the probability that q gives to each node."""
    log_q = truncated_normal.log_prob(NODES.unsqueeze(1), mu, sigma)
    return log_joint() - log_q - log_noise(), log_q.exp() * WEIGHTS.unsqueeze(1)


def posterior() -> tuple[torch.Tensor, torch.Tensor]:
    """Return mu and sigma (rows,) of the exact posterior, a truncated normal."""
    curvature = MODEL.precision[1, 1]
    mu = (MODEL.linear[1] - MODEL.precision[0, 1] * OBSERVED) / curvature
    return mu, curvature.rsqrt().expand_as(mu)


def bound(mu: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
    """Return the data term of VNCE (rows,) with its expectation over q exact."""
    log_ratio, probability = log_ratios(mu, sigma)
    return (torch.nn.functional.logsigmoid(log_ratio - math.log(NU)) * probability).sum(dim=0)


def nce_data_term() -> torch.Tensor:
    return torch.nn.functional.logsigmoid(nce_log_ratio() - math.log(NU))


FAMILIES = [(0.0, 1.0), (-2.0, 1.5), (3.0, 0.6), (1.0, 2.5)]


@pytest.mark.parametrize(("shift", "factor"), FAMILIES)
def test_the_bound_never_exceeds_nce(shift: float, factor: float) -> None:
    mu, sigma = posterior()
    assert (bound(mu + shift, sigma * factor) <= nce_data_term() + EXACT).all()


def test_the_bound_is_tight_when_q_is_the_posterior() -> None:
    torch.testing.assert_close(bound(*posterior()), nce_data_term(), rtol=0, atol=EXACT)


@pytest.mark.parametrize(("shift", "factor"), FAMILIES[1:])
def test_the_bound_is_loose_when_q_is_not_the_posterior(shift: float, factor: float) -> None:
    mu, sigma = posterior()
    assert (nce_data_term() - bound(mu + shift, sigma * factor) > 1e-3).all()


@pytest.mark.parametrize(("shift", "factor"), FAMILIES)
def test_the_noise_term_does_not_depend_on_q(shift: float, factor: float) -> None:
    mu, sigma = posterior()
    log_ratio, probability = log_ratios(mu + shift, sigma * factor)
    importance_sampled = (log_ratio.exp() * probability).sum(dim=0).log()
    torch.testing.assert_close(importance_sampled, nce_log_ratio(), rtol=0, atol=1e-8)


def test_draws_from_the_posterior_leave_no_variance() -> None:
    mu, sigma = posterior()
    uniforms = torch.rand(5, len(OBSERVED), generator=torch.Generator().manual_seed(0))
    draws = truncated_normal.quantile(uniforms.double(), mu, sigma)
    pairs = torch.stack(torch.broadcast_tensors(OBSERVED, draws), dim=-1)
    log_q = truncated_normal.log_prob(draws, mu, sigma)
    log_ratio = MODEL.log_phi(pairs) - log_q - log_noise()

    with_draws = vnce_objective(log_ratio, log_ratio, NU)
    exact = vnce_objective(nce_log_ratio().unsqueeze(0), nce_log_ratio().unsqueeze(0), NU)

    assert float(with_draws.data) == pytest.approx(float(exact.data), abs=EXACT)
    assert float(with_draws.noise) == pytest.approx(float(exact.noise), abs=EXACT)


@pytest.mark.parametrize("linear", ["zero", "free"])
def test_vnce_equals_nce_on_complete_data(linear: str) -> None:
    rng = np.random.default_rng(7)
    X = sample_truncated_gaussian(ring_precision(4, rng), 150, rng)
    options = {"linear": linear, "penalty": 0.5, "random_state": 3}
    vnce = TruncatedGaussianVNCE(**options).fit(X)
    nce = TruncatedGaussianNCE(imputation="drop", **options).fit(X)

    np.testing.assert_array_equal(vnce.precision_, nce.precision_)
    np.testing.assert_array_equal(vnce.linear_, nce.linear_)
    assert vnce.objective_path_ == nce.objective_path_
