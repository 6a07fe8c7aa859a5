"""Fits of a model that is not in the paper, and of one whose maximum has a closed form."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from vnce_engine.black_box import fits
from vnce_engine.black_box.affine_normal import AffineNormal
from vnce_engine.black_box.contrast import Contrast, Rows
from vnce_engine.black_box.gaussian_noise import GaussianNoise
from vnce_engine.distributions.gaussian import Gaussian, GaussianConditional
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.runtime.reports import FitStatus

NU = 5.0
NUM_ROWS = 2000
START = [0.5, -0.5, 1.0, 2.0]
ALPHA = [0.1, 0.1, 0.0, 0.0]
FAMILY = AffineNormal(observed_width=2, latent_width=1)


@pytest.fixture
def truth(harmonium: Any) -> Tensor:
    return harmonium.normalised((1.2, -0.8), 0.5)


@pytest.fixture
def noise(harmonium: Any, truth: Tensor, generator: torch.Generator) -> GaussianNoise:
    return GaussianNoise.fit(harmonium.sample(truth, NUM_ROWS, generator))


@pytest.fixture
def contrast(
    harmonium: Any, truth: Tensor, noise: GaussianNoise, generator: torch.Generator
) -> Contrast:
    X = harmonium.sample(truth, NUM_ROWS, generator).numpy()
    return Contrast.draw(X, noise, latent_width=1, nu=NU, num_draws=5, generator=generator)


def standard_errors(harmonium: Any, theta: Tensor, noise: GaussianNoise) -> Tensor:
    """Return those of NCE at the truth, with integrals summed on a grid.

    Source: Gutmann and Hyvärinen (2012), Theorem 3: the covariance is
    I⁻¹ - (1 + 1/nu) I⁻¹ m mᵀ I⁻¹ over n, where I and m are the moments of the slope of log phi
    under the data, weighted by the probability of noise.
    """
    points, area = harmonium.grid()
    slopes = torch.func.vmap(
        torch.func.grad(lambda t, u: harmonium.log_marginal(t, u)[0]), in_dims=(None, 0)
    )(theta, points.unsqueeze(1))
    log_density = harmonium.log_marginal(theta, points)
    weight = torch.sigmoid(math.log(NU) + noise.log_prob(points) - log_density)
    mass = area * log_density.exp() * weight
    information = (slopes * mass.unsqueeze(1)).mT @ slopes
    inverse = torch.linalg.inv(information)
    mean = inverse @ (slopes.mT @ mass)
    return ((inverse - (1 + 1 / NU) * torch.outer(mean, mean)).diagonal() / NUM_ROWS).sqrt()


def fitted(method: str, harmonium: Any, contrast: Contrast) -> fits.VariationalFit:
    match method:
        case "jointly":
            return fits.fit_jointly(harmonium, FAMILY, contrast, START, ALPHA)
        case "variational EM":
            return fits.fit_by_variational_em(harmonium, FAMILY, contrast, START, ALPHA)
        case "exact EM":
            return fits.fit_by_exact_em(harmonium, HarmoniumPosterior(), contrast, START)
        case _:
            return fits.fit_nce(harmonium.log_marginal, contrast, START)


class HarmoniumPosterior:
    """q(z | x) = N(wᵀx, 1); alpha is theta."""

    def rsample(self, alpha: Tensor, u: Tensor, uniforms: Tensor) -> Tensor:
        return FAMILY.rsample(self._affine(alpha), u, uniforms)

    def log_prob(self, alpha: Tensor, z: Tensor, u: Tensor) -> Tensor:
        return FAMILY.log_prob(self._affine(alpha), z, u)

    def _affine(self, alpha: Tensor) -> Tensor:
        return torch.cat([alpha[:2], alpha.new_zeros(2)])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["jointly", "variational EM", "exact EM", "NCE"])
def test_the_harmonium_is_recovered_within_five_standard_errors(
    method: str, harmonium: Any, truth: Tensor, noise: GaussianNoise, contrast: Contrast
) -> None:
    fit = fitted(method, harmonium, contrast)
    assert fit.status is FitStatus.CONVERGED
    theta = torch.from_numpy(fit.theta)
    theta = torch.cat([theta[:2] * theta[0].sign(), theta[2:]])  # z and -z are alike
    score = (theta - truth) / standard_errors(harmonium, truth, noise)
    assert (score.abs() < 5).all(), score


@pytest.mark.slow
def test_the_learnt_family_is_the_posterior(harmonium: Any, contrast: Contrast) -> None:
    # Five latent draws for each of 2000 rows determine alpha's entries to about 1 / sqrt(10,000)
    # around the posterior at the fitted theta, in units of z's standard deviation, which is 1.
    fit = fitted("jointly", harmonium, contrast)
    posterior = [fit.theta[0], fit.theta[1], 0.0, 0.0]
    np.testing.assert_allclose(fit.alpha, posterior, rtol=0, atol=5 / math.sqrt(10_000))


@pytest.mark.slow
def test_exact_em_climbs_the_nce_objective(harmonium: Any, contrast: Contrast) -> None:
    fit = fitted("exact EM", harmonium, contrast)
    nce = fits.fit_nce(harmonium.log_marginal, contrast, fit.theta, max_cycles=1)
    # The path's last value is J_NCE itself, whatever the draws: the bound is tight.
    assert fit.objective_path[-1] == pytest.approx(nce.objective_path[0], abs=1e-12)
    assert fit.objective_path[1] > fit.objective_path[0]


@pytest.mark.slow
def test_missing_cells_are_latents_of_a_model_of_complete_rows(generator: torch.Generator) -> None:
    n, k = 150, 10
    X = torch.randn(n, 2, dtype=torch.float64, generator=generator)
    X[:, 1] += X[:, 0]
    X[: n // 3, 0] = math.nan
    X[n // 2 :, 1] = math.nan
    noise = GaussianNoise.fit_columns(X)
    contrast = Contrast.draw(
        X.numpy(), noise, latent_width=2, nu=NU, num_draws=k, generator=generator
    )
    model, posterior = Gaussian(2), GaussianConditional(2)
    start = QuadraticModel.normal(X.nanmean(dim=0), torch.eye(2).double()).packed().numpy()
    em = fits.fit_by_exact_em(model, posterior, contrast, start)
    nce = fits.fit_nce(model.log_marginal, contrast, start)
    assert em.status is nce.status is FitStatus.CONVERGED
    # k draws for each row move theta as far as k n rows would; that costs p / (2 k n) on average.
    lost = nce.objective_path[-1] - em.objective_path[-1]
    assert 0 <= lost < 5 * len(start) / (2 * k * n)
    assert em.theta[1] < -0.5  # K_21 is -1 in truth, and 0 at the start


class Factor:
    """z ~ N(0, 1), x | z ~ N(w z, I): normalised, its likelihood known."""

    def log_phi(self, theta: Tensor, u: Tensor, z: Tensor) -> Tensor:
        squares = (u - z * theta).square().sum(dim=-1) + z[..., 0].square()
        return -0.5 * squares - 0.5 * (len(theta) + 1) * math.log(2 * math.pi)


def test_vi_of_a_gaussian_factor_is_maximum_likelihood(generator: torch.Generator) -> None:
    z, e = torch.randn(300, 1), torch.randn(300, 2)
    z.normal_(generator=generator)
    e.normal_(generator=generator)
    x = (z * torch.tensor([1.0, 2.0]) + e).double()
    # Two draws at ±1 standard deviation give the mean of a quadratic exactly.
    ends = torch.tensor([-1.0, 1.0], dtype=torch.float64)
    uniforms = torch.special.ndtr(ends).view(2, 1, 1).expand(2, 300, 1)
    rows = Rows(x, x.new_zeros(300), uniforms)
    fit = fits.fit_elbo(Factor(), FAMILY, rows, [0.5, 0.5], ALPHA, tolerance=1e-12)

    # Tipping and Bishop (1999): w is the leading eigenvector, its length sqrt(eigenvalue - 1).
    values, vectors = np.linalg.eigh((x.mT @ x / 300).numpy())
    expected = vectors[:, 1] * math.sqrt(values[1] - 1)
    assert fit.status is FitStatus.CONVERGED
    np.testing.assert_allclose(fit.theta * np.sign(fit.theta[0] * expected[0]), expected, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("units", "status"),
    [([1.0, 1.0, 1.0], FitStatus.CONVERGED), ([1e-6, 1.0, 1e6], FitStatus.MAX_ITERATIONS)],
)
def test_a_climb_that_ends_short_as_parameters_differ_in_size_has_not_converged(
    units: list[float], status: FitStatus, generator: torch.Generator
) -> None:
    rng = np.random.default_rng(0)
    mixing = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.4], [0.3, 0.0, 1.0]])
    X = (rng.normal(size=(400, 3)) @ mixing + [1.0, -2.0, 0.0]) * units
    noise = GaussianNoise.fit_columns(torch.from_numpy(X))
    contrast = Contrast.draw(X, noise, latent_width=3, nu=NU, num_draws=2, generator=generator)
    mean, variance = torch.from_numpy(X.mean(axis=0)), torch.from_numpy(X.var(axis=0))
    start = QuadraticModel.normal(mean, torch.diag(1 / variance))
    fit = fits.fit_nce(Gaussian(3).log_marginal, contrast, start.packed().numpy())
    assert fit.status is status
    assert ("units in which they are about 1" in fit.message) == (status is not FitStatus.CONVERGED)


def test_a_fit_stops_when_it_is_told_to(harmonium: Any, contrast: Contrast) -> None:
    fit = fits.fit_jointly(harmonium, FAMILY, contrast, START, ALPHA, on_step=lambda step: True)
    assert fit.status is FitStatus.CANCELLED
    assert fit.num_cycles == 1


def test_a_start_where_the_objective_is_undefined_is_returned_with_that_status(
    harmonium: Any, contrast: Contrast
) -> None:
    start = [1e200, 1e200, 1.0, 0.0]
    fit = fits.fit_nce(harmonium.log_marginal, contrast, start)
    assert fit.status is FitStatus.NON_FINITE
    assert fit.theta.tolist() == start


def test_parameters_must_be_finite_vectors(harmonium: Any, contrast: Contrast) -> None:
    with pytest.raises(ValueError, match="`theta` must be a vector of finite numbers"):
        fits.fit_nce(harmonium.log_marginal, contrast, [math.nan, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [1.0, 2.0]}, "`X` must be a table"),
        ({"X": [[math.inf, 0.0]]}, "`X` must be finite"),
        ({"nu": 0.0}, "`nu` must give from one to 100000000 noise rows"),
        ({"num_draws": 0}, "`num_draws` must be a whole number from 1"),
    ],
)
def test_a_contrast_refuses_what_it_cannot_use(
    change: dict[str, Any], message: str, generator: torch.Generator
) -> None:
    settings: dict[str, Any] = {"X": [[0.0, 1.0]], "nu": 1.0, "num_draws": 1, **change}
    noise = GaussianNoise.isotropic(1.0, 2)
    with pytest.raises(ValueError, match=message):
        Contrast.draw(settings.pop("X"), noise, latent_width=1, generator=generator, **settings)


def test_noise_rows_carry_the_missing_cells_of_data_rows(generator: torch.Generator) -> None:
    X = np.array([[0.0, np.nan], [np.nan, 1.0], [2.0, 3.0]])
    noise = GaussianNoise.isotropic(1.0, 2)
    contrast = Contrast.draw(X, noise, latent_width=2, nu=2.0, num_draws=1, generator=generator)
    np.testing.assert_array_equal(
        torch.isnan(contrast.noise.u).numpy(), np.tile(np.isnan(X), (2, 1))
    )
    assert contrast.nu == 2
