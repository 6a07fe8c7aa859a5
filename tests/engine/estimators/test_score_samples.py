"""Log densities of rows under fitted estimators, in the units of the table."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

from tests.engine.estimators.quick_fits import QUICK, table
from vnce_engine import (
    GaussianEM,
    GaussianVNCE,
    TruncatedGaussianNCE,
    TruncatedGaussianScoreMatching,
    TruncatedGaussianVNCE,
)
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.inference.log_density import log_normaliser
from vnce_engine.simulate import ring_precision, sample_truncated_gaussian

# dx/dy of x, the value before the transform, and y, that after it.
SLOPES = {
    "none": lambda y: np.ones_like(y),
    "sqrt": lambda y: 2 * y,
    "cbrt": lambda y: 3 * y**2,
    "log1p": np.exp,
}
INVERSES = {"none": lambda y: y, "sqrt": np.square, "cbrt": lambda y: y**3, "log1p": np.expm1}
NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)


@pytest.mark.slow
@pytest.mark.parametrize("transform", SLOPES)
def test_a_truncated_density_integrates_to_one_in_the_table_s_units(transform: str) -> None:
    X = 10 * table(d=3)[:, :2]
    model = TruncatedGaussianVNCE(column_transform=transform, **QUICK).fit(X)
    # To 12 standard deviations of the parent, and more.
    top = 12 / np.sqrt(np.linalg.eigvalsh(model.precision_)[0])
    y, weights = top / 2 * (NODES + 1), top / 2 * WEIGHTS
    x, weights = INVERSES[transform](y), weights * SLOPES[transform](y)
    gap = np.full_like(x, np.nan)
    pairs = np.stack([axis.ravel() for axis in np.meshgrid(x, x, indexing="ij")], axis=1)
    for rows, mass in (
        (pairs, np.outer(weights, weights).ravel()),
        (np.stack([x, gap], axis=1), weights),
        (np.stack([gap, x], axis=1), weights),
    ):
        log_density, error = model.score_samples(rows, return_error=True)
        # All rows share the error of the constant.
        assert mass @ np.exp(log_density) == pytest.approx(1, abs=5 * error.max())
        assert error.max() < 0.002


@pytest.mark.parametrize("transform", ["none", "cbrt"])
@pytest.mark.parametrize("estimator", [GaussianEM(), GaussianVNCE(penalty=0.5)])
def test_a_gaussian_s_are_those_of_its_normal_distribution(estimator: Any, transform: str) -> None:
    X = 10 * table(n=200)
    model = estimator.set_params(column_transform=transform).fit(X)
    covariance = np.linalg.inv(model.precision_)
    mean = covariance @ model.linear_
    X[0] = np.nan
    log_density, error = model.score_samples(X, return_error=True)
    assert (error == 0).all()
    assert log_density[0] == 0
    for row, found in zip(X[1:40], log_density[1:], strict=False):
        o = np.flatnonzero(~np.isnan(row))
        if not len(o):
            continue
        y = np.cbrt(row[o]) if transform == "cbrt" else row[o]
        # d cbrt(x) / dx = 1 / (3 y²)
        log_slope = -np.log(3 * y**2).sum() if transform == "cbrt" else 0.0
        normal = multivariate_normal(mean[o], covariance[np.ix_(o, o)])
        assert found == pytest.approx(normal.logpdf(y) + log_slope, rel=1e-8, abs=1e-8)


def test_estimators_without_a_constant_of_their_own_have_densities_too() -> None:
    # One column alone of independent ones: half of a normal of precision K_ii.
    rng = np.random.default_rng(0)
    X = np.abs(rng.standard_normal((300, 2))) * [1.0, 20.0]
    model = TruncatedGaussianScoreMatching(linear="zero", penalty=1e9, penalty_kind="ridge").fit(X)
    assert model.log_partition_ is None
    scale = np.diag(model.precision_) ** -0.5
    expected = (np.log(2) + norm.logpdf(X, scale=scale)).sum(axis=1)
    found, error = model.score_samples(X, return_error=True)
    assert np.abs(found - expected).max() <= max(5 * error.max(), 1e-6)


@pytest.mark.slow
def test_the_error_of_the_estimated_constant_falls_as_one_over_root_n() -> None:
    truth = QuadraticModel(
        torch.from_numpy(ring_precision(3, np.random.default_rng(0))),
        torch.zeros(3).double(),
        torch.tensor(0.0),
    )
    exact = float(log_normaliser(truth, torch.Generator().manual_seed(0))[0])

    def deviation(n: int, seed: int) -> float:
        X = sample_truncated_gaussian(truth.precision.numpy(), n, np.random.default_rng(seed))
        model = TruncatedGaussianNCE(linear="zero", penalty=None, random_state=seed).fit(X)
        assert model.log_partition_ is not None
        return model.log_partition_ - exact

    small, large = (
        float(np.sqrt(np.mean([deviation(n, seed) ** 2 for seed in range(12)])))
        for n in (100, 1600)
    )
    # A root mean square of 12 has the relative error 1 / √24, the ratio of two 1 / √12 = .29.
    assert np.log(small / large) == pytest.approx(np.log(4), abs=3 * 12**-0.5)


def test_the_estimated_constant_is_the_integral_of_the_estimated_model() -> None:
    X = table(n=1000)
    model = TruncatedGaussianVNCE(linear="zero", penalty=0.5).fit(X)
    exact, error = log_normaliser(model._result.model, torch.Generator().manual_seed(0))
    # Alone c would have the standard error √(1 / n + 1 / noise rows) of a logistic intercept.
    assert float(error) < 0.001
    assert model.log_partition_ == pytest.approx(float(exact), abs=1000**-0.5)


@pytest.mark.slow
def test_a_zero_where_the_transform_is_steep_has_an_infinite_density() -> None:
    X = table()
    model = TruncatedGaussianVNCE(column_transform="cbrt", **QUICK).fit(X)
    found = model.score_samples([[0.0, 1.0, 1.0, 1.0], [np.nan, 1.0, 1.0, 1.0]])
    assert found[0] == np.inf
    assert np.isfinite(found[1])


def test_an_indefinite_k_is_refused() -> None:
    model = TruncatedGaussianVNCE(**QUICK).fit(table())
    model._result.model.precision[0, 1] = model._result.model.precision[1, 0] = 1e3
    with pytest.raises(ValueError, match="needs a positive definite `precision_`"):
        model.score_samples(table())
