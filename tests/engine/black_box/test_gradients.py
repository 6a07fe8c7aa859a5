"""Both gradients of q against quadrature, on the bound of VNCE and on that of VI."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from vnce_engine.black_box.affine_normal import AffineNormal
from vnce_engine.black_box.gaussian_noise import GaussianNoise
from vnce_engine.black_box.gradients import (
    plain_score_function,
    reparametrised,
    score_function,
)
from vnce_engine.distributions.uniforms import open_uniforms

FAMILY = AffineNormal(observed_width=2, latent_width=1)
# Not the posterior, which is N(1.2 x_1 - 0.8 x_2, 1).
ALPHA = torch.tensor([0.7, -0.2, 0.3, 0.2], dtype=torch.float64)
X = torch.tensor([[1.0, -0.5], [-0.4, 0.9], [0.2, 0.1]], dtype=torch.float64)
NUM_DRAWS, NUM_REPEATS = 5, 1000
ESTIMATORS = {
    "reparametrised": reparametrised,
    "score function": score_function,
    "plain score function": plain_score_function,
}
# Log weights to values, given the log noise density of the rows.
BOUNDS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "VNCE": lambda weights, log_noise: logsigmoid(weights - log_noise - math.log(2.0)),
    "VI": lambda weights, log_noise: weights,
}


@pytest.fixture
def theta(harmonium: Any) -> Tensor:
    return harmonium.normalised((1.2, -0.8), 0.5)


def value_of(bound: str) -> Callable[[Tensor], Tensor]:
    log_noise = GaussianNoise.isotropic(2.0, 2).log_prob(X)
    repeats = log_noise.repeat(NUM_REPEATS)

    def value(log_weights: Tensor) -> Tensor:
        few = log_weights.shape[1] == len(X)
        return BOUNDS[bound](log_weights, log_noise if few else repeats)

    return value


def by_quadrature(harmonium: Any, theta: Tensor, bound: str) -> Tensor:
    """Return the gradient of E_q[g], z on a fixed grid and weighted by q."""
    z = torch.linspace(-12, 12, 4001, dtype=torch.float64)
    step = float(z[1] - z[0])
    grid = z.view(-1, 1, 1).expand(-1, len(X), 1)
    alpha = ALPHA.clone().requires_grad_(True)
    log_q = FAMILY.log_prob(alpha, grid, X)
    g = value_of(bound)(harmonium.log_phi(theta, X, grid) - log_q)
    expected = step * (log_q.exp() * g).sum(dim=0).mean()
    return torch.autograd.grad(expected, alpha)[0]


def estimates(
    name: str, harmonium: Any, theta: Tensor, bound: str, generator: torch.Generator
) -> Tensor:
    """Return independent estimates (repeats, a): each from its own draws and its own alpha."""
    uniforms = open_uniforms((NUM_DRAWS, NUM_REPEATS * len(X), 1), generator)
    gradients = []
    for repeat in uniforms.split(len(X), dim=1):
        alpha = ALPHA.clone().requires_grad_(True)
        surrogate = ESTIMATORS[name](harmonium, FAMILY, theta, alpha, X, repeat, value_of(bound))
        gradients.append(torch.autograd.grad(surrogate, alpha)[0])
    return torch.stack(gradients)


@pytest.mark.slow
@pytest.mark.parametrize("bound", list(BOUNDS))
@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_the_mean_gradient_is_that_of_quadrature(
    name: str, bound: str, harmonium: Any, theta: Tensor, generator: torch.Generator
) -> None:
    sample = estimates(name, harmonium, theta, bound, generator)
    error = sample.std(dim=0) / math.sqrt(NUM_REPEATS)
    score = (sample.mean(dim=0) - by_quadrature(harmonium, theta, bound)) / error
    assert (score.abs() < 5).all(), score


@pytest.mark.slow
@pytest.mark.parametrize("bound", list(BOUNDS))
def test_the_baseline_lowers_the_variance(
    bound: str, harmonium: Any, theta: Tensor, generator: torch.Generator
) -> None:
    with_baseline = estimates("score function", harmonium, theta, bound, generator)
    without = estimates("plain score function", harmonium, theta, bound, generator)
    # The ratio of two variances of 1000 estimates each has a relative standard error of about
    # sqrt(2 * 2 / 1000) = .06 for normal ones; .7 is five of them below 1.
    assert (with_baseline.var(dim=0) < 0.7 * without.var(dim=0)).all()


def test_a_baseline_needs_two_draws(harmonium: Any, theta: Tensor) -> None:
    uniforms = torch.full((1, len(X), 1), 0.5, dtype=torch.float64)
    with pytest.raises(ValueError, match="`uniforms` must hold at least 2 draws a row, got 1"):
        score_function(harmonium, FAMILY, theta, ALPHA, X, uniforms, value_of("VI"))
