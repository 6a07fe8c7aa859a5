from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from tests.engine.normal_rows import COVARIANCE, FULL, MEAN, ROWS, marginal_by_scipy
from vnce_engine.black_box.gaussian_noise import GaussianNoise
from vnce_engine.distributions.uniforms import open_uniforms


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
