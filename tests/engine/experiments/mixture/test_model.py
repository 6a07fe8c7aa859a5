"""Densities of the mixture, and samples of it."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from vnce_engine.experiments.mixture.data import MixtureData, draw_normalised, draw_unnormalised
from vnce_engine.experiments.mixture.model import (
    log_bernoulli,
    log_joint,
    log_phi,
    log_posterior,
    true_log_partition,
)

Draw = Callable[[torch.Tensor, int, int, torch.Generator], MixtureData]


def one(value: float) -> torch.Tensor:
    return torch.tensor([value], dtype=torch.float64)


@pytest.mark.parametrize("theta", [0.5, 1.0, 4.0])
def test_densities_integrate_to_one_at_the_true_constant(theta: float) -> None:
    def normalised(x: float) -> float:
        return float(log_joint(one(theta), one(x)[None]).exp().sum())

    def unnormalised(x: float) -> float:
        c = true_log_partition(one(theta))
        return float(log_phi(one(theta), c, one(x)[None]).exp().sum())

    for density in (normalised, unnormalised):
        integral, error = quad(density, -math.inf, math.inf)
        assert integral == pytest.approx(1, abs=max(10 * error, 1e-9))


def test_posterior_is_the_papers_formula() -> None:
    theta, x = 3.0, torch.linspace(-6, 6, 25, dtype=torch.float64)[None]
    posterior = log_posterior(log_joint(one(theta), x)).exp()[0]
    odds = theta * torch.exp(-0.5 * x.square() * (1 - theta**-2))  # of z = 1, sigma_1 = 1
    torch.testing.assert_close(posterior, 1 / (1 + odds), rtol=1e-12, atol=0)


def test_the_bernoulli_family_holds_the_posterior() -> None:
    theta, x = 3.0, torch.linspace(-6, 6, 25, dtype=torch.float64)[None]
    weights = torch.tensor([[math.log(theta), 0.0, -0.5 * (1 - theta**-2)]], dtype=torch.float64)
    torch.testing.assert_close(
        log_bernoulli(weights, x), log_posterior(log_joint(one(theta), x)), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    ("draw", "known_weight"), [(draw_normalised, 0.5), (draw_unnormalised, 1 / 4)]
)
def test_samples_have_the_mixtures_variance(draw: Draw, known_weight: float) -> None:
    n, theta = 200_000, 3.0
    data = draw(one(theta), n, n, torch.Generator().manual_seed(0))
    variance = known_weight + (1 - known_weight) * theta**2
    fourth = 3 * (known_weight + (1 - known_weight) * theta**4)
    se = math.sqrt((fourth - variance**2) / n)
    assert abs(float(data.x.square().mean()) - variance) < 5 * se
    assert abs(float(data.y.square().mean()) - theta**2) < 5 * math.sqrt(2 / n) * theta**2
    assert np.isclose(float(data.noise_scale), theta)
