"""The diagnostic of the noise, and the objective where data and noise are far apart."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from vnce_engine.black_box.gaussian_noise import GaussianNoise
from vnce_engine.black_box.overlap import Overlap, noise_overlap
from vnce_engine.contrastive.objective import vnce_objective
from vnce_engine.distributions.gaussian import Gaussian
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.distributions.uniforms import open_uniforms


@pytest.mark.parametrize(
    ("log_ratio", "log_sigmoid"),
    # log(1 / (1 + exp(-t))): -log1p(exp(-t)) for large t, whose first term is all that is left.
    [(-800.0, -800.0), (-50.0, -50.0), (0.0, -math.log(2)), (50.0, -math.exp(-50)), (800.0, 0.0)],
)
def test_the_objective_is_exact_at_extreme_log_ratios(log_ratio: float, log_sigmoid: float) -> None:
    at = torch.tensor([[log_ratio]], dtype=torch.float64)
    terms = vnce_objective(at, -at, 1.0)
    assert float(terms.data) == pytest.approx(log_sigmoid, rel=1e-12)
    assert float(terms.noise) == pytest.approx(log_sigmoid, rel=1e-12)


def normal_against(noise: GaussianNoise, nu: float = 1.0) -> Overlap:
    """Judge noise for 500 standard normal rows of two columns under their true density."""
    generator = torch.Generator().manual_seed(4)
    mean, precision = torch.zeros(2).double(), torch.eye(2).double()
    theta = QuadraticModel.normal(mean, precision).packed()
    x = torch.randn(500, 2, dtype=torch.float64, generator=generator)
    y = noise.sample(open_uniforms((round(500 * nu), 2), generator))

    def log_ratio(u: Tensor) -> Tensor:
        return (Gaussian(2).log_marginal(theta, u) - noise.log_prob(u)).unsqueeze(0)

    return noise_overlap(log_ratio(x), log_ratio(y), nu)


@pytest.mark.parametrize("nu", [1.0, 10.0])
def test_noise_that_equals_the_data_confuses_fully(nu: float) -> None:
    overlap = normal_against(GaussianNoise.isotropic(1.0, 2), nu)
    coin = -(math.log(1 / (1 + nu)) + nu * math.log(nu / (1 + nu))) / (1 + nu)
    assert overlap.loss == pytest.approx(coin, rel=1e-12)
    assert overlap.confusion == pytest.approx(1.0, rel=1e-12)
    assert overlap.effective_noise == pytest.approx(1.0, rel=1e-12)
    assert overlap.separated_share == 0
    assert overlap.advice == ()


def test_separated_noise_is_reported() -> None:
    far = GaussianNoise(torch.full((2,), 50.0).double(), torch.eye(2).double())
    overlap = normal_against(far)
    assert overlap.loss < 1e-12
    assert overlap.separated_share == 1
    assert "near certainty" in overlap.advice[0]


def test_noise_of_which_little_falls_where_the_model_is_is_reported() -> None:
    overlap = normal_against(GaussianNoise.isotropic(900.0, 2), nu=10.0)
    assert overlap.effective_noise < 0.01
    assert any("few noise rows" in advice for advice in overlap.advice)


def test_draws_far_from_the_posterior_are_reported() -> None:
    log_ratio = torch.zeros(50, 4, dtype=torch.float64)
    log_ratio[0] = 100.0
    overlap = noise_overlap(log_ratio, torch.zeros(1, 4, dtype=torch.float64), 1.0)
    np.testing.assert_allclose(overlap.effective_draws, 1 / 50)
    assert any("far from the posterior" in advice for advice in overlap.advice)


def test_noise_without_density_at_a_data_row_is_refused() -> None:
    with pytest.raises(ValueError, match="the noise must reach all data"):
        noise_overlap(torch.tensor([[math.inf]]), torch.tensor([[0.0]]), 1.0)
