"""What every family and noise must be: a density, sampled as it says, smooth in its parameters."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from vnce_engine.black_box.affine_normal import AffineNormal
from vnce_engine.black_box.gaussian_noise import GaussianNoise
from vnce_engine.black_box.network_family import NetworkFamily
from vnce_engine.distributions.gaussian import (
    Gaussian,
    GaussianConditional,
    QuadraticModel,
)
from vnce_engine.distributions.uniforms import open_uniforms

COVARIANCE = np.array([[1.0, 0.6, -0.3], [0.6, 1.5, 0.2], [-0.3, 0.2, 0.8]])
MEAN = np.array([0.5, -1.0, 2.0])
NAN = math.nan
ROWS = torch.tensor(
    [[0.3, NAN, 1.0], [NAN, NAN, 2.5], [0.1, -2.0, 1.5], [1.3, NAN, 2.0]], dtype=torch.float64
)
THETA = QuadraticModel.normal(
    torch.from_numpy(MEAN), torch.linalg.inv(torch.from_numpy(COVARIANCE))
).packed()
FULL = torch.tensor([[0.3, -0.2], [1.0, 0.5]], dtype=torch.float64)


def network_weights() -> Tensor:
    family = NetworkFamily((2, 5, 4, 2))
    return 10 * family.start(torch.Generator().manual_seed(0))


# Family, alpha, rows: one latent or missing coordinate in the rows that are integrated.
FAMILIES: list[Any] = [
    pytest.param(
        AffineNormal(2, 1), torch.tensor([0.4, -1.0, 0.2, 0.3]).double(), FULL, id="affine"
    ),
    pytest.param(NetworkFamily((2, 5, 4, 2)), network_weights(), FULL, id="network"),
    pytest.param(GaussianConditional(3), THETA, ROWS[[0, 3]], id="conditional"),
]


def completed(family: Any, u: Tensor, cells: Tensor) -> Tensor:
    """Return latents z (k, n, m) whose one unknown coordinate has the values `cells` (k,)."""
    if not torch.isnan(u).any():
        return cells.view(-1, 1, 1).expand(-1, len(u), 1)
    return torch.where(torch.isnan(u), cells.view(-1, 1, 1), u)


@pytest.mark.parametrize(("family", "alpha", "u"), FAMILIES)
def test_a_family_integrates_to_one(family: Any, alpha: Tensor, u: Tensor) -> None:
    cells = torch.linspace(-30, 30, 20_001, dtype=torch.float64)
    log_q = family.log_prob(alpha, completed(family, u, cells), u)
    mass = torch.trapezoid(log_q.exp(), cells, dim=0)
    torch.testing.assert_close(mass, torch.ones_like(mass), rtol=1e-10, atol=0)


@pytest.mark.parametrize(("family", "alpha", "u"), FAMILIES)
def test_draws_are_the_quantiles_of_the_density(family: Any, alpha: Tensor, u: Tensor) -> None:
    levels = torch.tensor([0.05, 0.3, 0.5, 0.9], dtype=torch.float64)
    width = u.shape[1] if torch.isnan(u).any() else 1
    z = family.rsample(alpha, u, levels.view(-1, 1, 1).expand(-1, len(u), width))
    cells = torch.linspace(-30, 30, 20_001, dtype=torch.float64)
    density = family.log_prob(alpha, completed(family, u, cells), u).exp()
    mass = torch.cumulative_trapezoid(density, cells, dim=0)  # (cells - 1, n)
    for row in range(len(u)):
        column = int(torch.isnan(u[row]).nonzero()[0]) if width > 1 else 0
        reached = np.interp(z[:, row, column].numpy(), cells[1:].numpy(), mass[:, row].numpy())
        np.testing.assert_allclose(reached, levels.numpy(), atol=1e-5)


@pytest.mark.parametrize(("family", "alpha", "u"), FAMILIES)
def test_draws_and_density_move_smoothly_with_the_parameters(
    family: Any, alpha: Tensor, u: Tensor
) -> None:
    uniforms = torch.tensor([0.2, 0.7], dtype=torch.float64).view(2, 1, 1)
    width = u.shape[1] if torch.isnan(u).any() else 1
    uniforms = uniforms.expand(2, len(u), width)

    def both(parameters: Tensor) -> Tensor:
        z = family.rsample(parameters, u, uniforms)
        return z.sum(dim=-1) + family.log_prob(parameters, z, u)

    assert torch.autograd.gradcheck(both, alpha.clone().requires_grad_(True))


def test_observed_cells_stay_as_they_are_in_completed_rows() -> None:
    uniforms = open_uniforms((4, len(ROWS), 3), torch.Generator().manual_seed(1))
    z = GaussianConditional(3).rsample(THETA, ROWS, uniforms)
    observed = ~torch.isnan(ROWS)
    assert (z[:, observed] == ROWS[observed]).all()
    assert torch.isfinite(z).all()


def marginal_by_scipy(rows: Tensor) -> list[float]:
    values = []
    for row in rows.numpy():
        seen = ~np.isnan(row)
        part = stats.multivariate_normal(MEAN[seen], COVARIANCE[np.ix_(seen, seen)])
        values.append(float(part.logpdf(row[seen])))
    return values


def test_the_gaussian_model_has_the_marginals_of_the_normal_distribution() -> None:
    found = Gaussian(3).log_marginal(THETA, ROWS)
    np.testing.assert_allclose(found.numpy(), marginal_by_scipy(ROWS), rtol=1e-12)


@pytest.mark.parametrize("rows", [ROWS, ROWS[2:3]], ids=["holes", "complete"])
def test_gaussian_noise_has_the_marginals_of_the_normal_distribution(rows: Tensor) -> None:
    noise = GaussianNoise(torch.from_numpy(MEAN), torch.from_numpy(np.linalg.cholesky(COVARIANCE)))
    np.testing.assert_allclose(noise.log_prob(rows).numpy(), marginal_by_scipy(rows), rtol=1e-12)


def test_independent_gaussian_noise_has_the_marginals_of_its_columns() -> None:
    rows = ROWS[:, [0, 2]]
    noise = GaussianNoise.fit_columns(rows, scale=2.0)
    mean, spread = np.nanmean(rows, axis=0), 2 * np.nanstd(rows, axis=0)
    expected = np.nansum(stats.norm.logpdf(rows.numpy(), mean, spread), axis=1)
    np.testing.assert_allclose(noise.log_prob(rows).numpy(), expected, rtol=1e-12)


def test_isotropic_noise_has_the_variance_it_is_given_in_every_column() -> None:
    noise = GaussianNoise.isotropic(4.0, 2)
    expected = stats.norm(0.0, 2.0).logpdf(FULL.numpy()).sum(axis=1)
    np.testing.assert_allclose(noise.log_prob(FULL).numpy(), expected, rtol=1e-13)
    # The normal's quantile at Phi(1) is one standard deviation.
    uniforms = torch.full((1, 2), float(stats.norm.cdf(1.0)), dtype=torch.float64)
    np.testing.assert_allclose(noise.sample(uniforms).numpy(), [[2.0, 2.0]], rtol=1e-13)


def test_gaussian_noise_is_sampled_with_its_mean_and_covariance() -> None:
    noise = GaussianNoise(torch.from_numpy(MEAN), torch.from_numpy(np.linalg.cholesky(COVARIANCE)))
    n = 20_000
    y = noise.sample(open_uniforms((n, 3), torch.Generator().manual_seed(2))).numpy()
    error = np.sqrt(np.diag(COVARIANCE) / n)
    assert (np.abs(y.mean(axis=0) - MEAN) < 5 * error).all()
    squares = COVARIANCE**2 + np.outer(np.diag(COVARIANCE), np.diag(COVARIANCE))
    assert (np.abs(np.cov(y.T) - COVARIANCE) < 5 * np.sqrt(squares / n)).all()


def test_draws_from_the_gaussian_posterior_all_weigh_phi_of_the_observed_cells() -> None:
    uniforms = open_uniforms((5, len(ROWS), 3), torch.Generator().manual_seed(1))
    family, model = GaussianConditional(3), Gaussian(3)
    z = family.rsample(THETA, ROWS, uniforms)
    weights = model.log_phi(THETA, ROWS, z) - family.log_prob(THETA, z, ROWS)
    expected = model.log_marginal(THETA, ROWS).expand(5, -1)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-12)


def test_parameters_of_the_gaussian_survive_packing() -> None:
    parameters = QuadraticModel.unpack(THETA, 3)
    torch.testing.assert_close(parameters.packed(), THETA, rtol=0, atol=0)
    assert (parameters.precision == parameters.precision.mT).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianNoise.fit(FULL, scale=0.0), "`scale` must be positive and finite"),
        (lambda: GaussianNoise.fit(ROWS), "`u` must be complete"),
        (lambda: GaussianNoise.fit(FULL), "`u` must have a covariance of full rank"),
        (lambda: GaussianNoise.fit_columns(FULL[:1]), "column 0 .* needs at least two different"),
    ],
)
def test_noise_refuses_what_it_cannot_be_fitted_to(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
