"""Gaussian networks by VNCE, against maximum likelihood with the noise's error derived."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import Tensor

from vnce_engine.distributions.gaussian import Gaussian
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.estimators.gaussian import GaussianNCE, GaussianVNCE
from vnce_engine.runtime.reports import FitStatus
from vnce_engine.simulate import ring_precision

FloatArray = NDArray[np.float64]

COVARIANCE = np.array([[1.0, 0.6, -0.3], [0.6, 1.5, 0.2], [-0.3, 0.2, 0.8]])
MEAN = np.array([0.5, -10.0, 200.0])
UNITS = np.array([1.0, 0.01, 30.0])


def table(n: int, fraction: float, seed: int) -> FloatArray:
    """Return rows of the Gaussian in odd units, with a `fraction` of cells missing."""
    rng = np.random.default_rng(seed)
    X = MEAN + UNITS * rng.multivariate_normal(np.zeros(3), COVARIANCE, size=n)
    X[rng.random(X.shape) < fraction] = np.nan
    return X[~np.isnan(X).all(axis=1)]


def maximum_likelihood(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and covariance by EM, written out row by row."""
    mean, covariance = np.nanmean(X, axis=0), np.diag(np.nanvar(X, axis=0))
    for _ in range(60):  # each leaves about the share of missing cells of the last's error
        first, second = np.zeros(3), np.zeros((3, 3))
        for row in X:
            m, o = np.isnan(row), ~np.isnan(row)
            slope = covariance[np.ix_(m, o)] @ np.linalg.inv(covariance[np.ix_(o, o)])
            x, spread = row.copy(), np.zeros((3, 3))
            x[m] = mean[m] + slope @ (row[o] - mean[o])
            spread[np.ix_(m, m)] = covariance[np.ix_(m, m)] - slope @ covariance[np.ix_(o, m)]
            first += x / len(X)
            second += (np.outer(x, x) + spread) / len(X)
        mean, covariance = first, second - np.outer(first, first)
    return mean, covariance


def errors_of_likelihood(X: FloatArray, mean: FloatArray, K: FloatArray) -> FloatArray:
    """Return standard errors of K's lower triangle from the observed information.

    c is not free in the likelihood: it is the log of the integral, given K and h.
    """
    x = torch.from_numpy((X - MEAN) / UNITS)
    at = QuadraticModel.normal(
        torch.from_numpy((mean - MEAN) / UNITS), torch.from_numpy(K * np.outer(UNITS, UNITS))
    ).packed()[:-1]

    def log_likelihood(free: Tensor) -> Tensor:
        parameters = QuadraticModel.unpack(torch.cat([free, free.new_zeros(1)]), 3)
        normaliser = QuadraticModel.normal(
            torch.linalg.solve(parameters.precision, parameters.linear), parameters.precision
        ).log_partition
        theta = torch.cat([free, normaliser.reshape(1)])
        return Gaussian(3).log_marginal(theta, x).sum()

    information = -torch.autograd.functional.hessian(log_likelihood, at)
    errors = torch.linalg.inv(information).diagonal().sqrt()[:6].numpy()
    units = np.outer(UNITS, UNITS)[np.tril_indices(3)]
    return np.asarray(errors / units)


@pytest.mark.slow
@pytest.mark.parametrize("fraction", [0.0, 0.3])
def test_the_estimate_is_maximum_likelihood_up_to_the_error_of_the_noise(fraction: float) -> None:
    # Where noise is the fitted Gaussian, every row's class probability is nu / (1 + nu), and the
    # estimate differs from maximum likelihood by what the mean slope of the nu n noise rows, which
    # carry the data's holes, differs from 0: its standard error is that of the likelihood's
    # estimate over sqrt(nu).
    nu = 20
    X = table(500, fraction, seed=1)
    mean, covariance = maximum_likelihood(X)
    K = np.linalg.inv(covariance)
    fitted = GaussianVNCE(penalty=None, noise_ratio=nu, noise_draws="random", random_state=0).fit(X)
    assert fitted.converged_
    lower = np.tril_indices(3)
    errors = errors_of_likelihood(X, mean, K)
    score = (fitted.precision_ - K)[lower] / (errors / np.sqrt(nu))
    assert (np.abs(score) < 5).all(), score
    location = np.linalg.solve(fitted.precision_, fitted.linear_)
    assert (np.abs(location - mean) < 5 * np.sqrt(np.diag(covariance) / (0.7 * nu * len(X)))).all()


@pytest.mark.slow
def test_strongly_dependent_columns_come_out_at_maximum_likelihood_too() -> None:
    # Independent noise is so far from this ring that the first fit's K is nearly singular, and
    # noise needs several rounds to come near.
    rng = np.random.default_rng(202)
    truth = ring_precision(20, rng)
    X = rng.multivariate_normal(np.zeros(20), np.linalg.inv(truth), size=1000)
    fitted = GaussianVNCE(penalty=None, noise_draws="random", random_state=0).fit(X)
    assert fitted.converged_
    assert fitted.diagnostics_.mean_classification == pytest.approx(10 / 11, rel=0.02)
    K = np.linalg.inv(np.cov(X.T, bias=True))
    errors = np.sqrt((np.outer(np.diag(K), np.diag(K)) + K**2) / (10 * len(X)))
    assert (np.abs(fitted.precision_ - K) < 5 * errors).all()


@pytest.mark.slow
def test_evenly_spread_noise_comes_nearer_to_maximum_likelihood() -> None:
    X = table(500, 0.0, seed=2)
    K = np.linalg.inv(np.cov(X.T, bias=True))

    def distance(noise_draws: Any) -> float:
        gaps = [
            GaussianVNCE(penalty=None, noise_draws=noise_draws, random_state=seed).fit(X).precision_
            / K
            - 1
            for seed in range(3)
        ]
        return float(np.mean(np.square(gaps)))

    assert distance("sobol") < distance("random")


def test_units_and_origins_of_columns_do_not_matter() -> None:
    X = table(200, 0.2, seed=4)
    plain = GaussianVNCE(penalty=None, random_state=0).fit((X - MEAN) / UNITS)
    moved = GaussianVNCE(penalty=None, random_state=0).fit(X)
    scaled = moved.precision_ * np.outer(UNITS, UNITS)
    np.testing.assert_allclose(scaled, plain.precision_, rtol=1e-6)
    np.testing.assert_allclose(
        moved.partial_correlation_, plain.partial_correlation_, rtol=1e-6, atol=1e-9
    )
    # log phi of a row differs by the log of the units alone.
    row = X[~np.isnan(X).any(axis=1)][0]

    def log_phi(model: GaussianVNCE, x: FloatArray) -> float:
        return float(-0.5 * x @ model.precision_ @ x + model.linear_ @ x - model.log_partition_)

    expected = log_phi(plain, (row - MEAN) / UNITS) - np.log(UNITS).sum()
    assert log_phi(moved, row) == pytest.approx(expected, rel=1e-6)


def test_missing_cells_are_imputed_by_their_conditional_mean() -> None:
    X = table(200, 0.3, seed=5)
    fitted = GaussianVNCE(penalty=None, random_state=0).fit(X)
    filled = fitted.impute(X)
    seen = ~np.isnan(X)
    np.testing.assert_array_equal(filled[seen], X[seen])
    K, h = fitted.precision_, fitted.linear_
    for row, given in zip(filled, X, strict=True):
        m = np.isnan(given)
        pull = h[m] - K[np.ix_(m, ~m)] @ given[~m]
        np.testing.assert_allclose(row[m], np.linalg.solve(K[np.ix_(m, m)], pull), rtol=1e-8)


def test_imputed_cells_of_transformed_columns_are_means_on_their_own_scale() -> None:
    rng = np.random.default_rng(6)
    X = np.expm1(np.abs(rng.multivariate_normal([3.0, 4.0], [[0.2, 0.1], [0.1, 0.2]], size=300)))
    X[:50, 0] = np.nan
    fitted = GaussianVNCE(penalty=None, column_transform="log1p", random_state=0).fit(X)
    filled = fitted.impute(X)[:50, 0]
    # log(1 + x) is normal, so that 1 + x has mean exp(m + v / 2), but for the mass below 0, six
    # standard deviations away: 1e-9.
    variance = 1 / fitted.precision_[0, 0]
    mean = (fitted.linear_[0] - fitted.precision_[0, 1] * np.log1p(X[:50, 1])) * variance
    np.testing.assert_allclose(filled, np.expm1(mean + variance / 2), rtol=1e-8)


def test_plain_nce_of_complete_rows_is_the_same_fit() -> None:
    X = table(200, 0.1, seed=7)
    complete = X[~np.isnan(X).any(axis=1)]
    vnce = GaussianVNCE(penalty=None, random_state=3).fit(complete)
    nce = GaussianNCE(penalty=None, imputation="drop", random_state=3).fit(X)
    np.testing.assert_array_equal(vnce.precision_, nce.precision_)
    assert nce.warnings_[0].code == "missing-cells-not-modelled"


def test_filling_by_means_shrinks_the_interactions_that_vnce_keeps() -> None:
    # A pair seen together in half its rows keeps, once filled, half its covariance.
    X = table(2000, 0.3, seed=8)
    truth = np.linalg.inv(COVARIANCE)[1, 0] / np.outer(UNITS, UNITS)[1, 0]
    vnce = GaussianVNCE(penalty=None, random_state=0).fit(X).precision_[1, 0]
    filled = GaussianNCE(penalty=None, random_state=0).fit(X).precision_[1, 0]
    assert abs(vnce - truth) < abs(filled - truth)


def test_a_penalty_shrinks_interactions() -> None:
    X = table(200, 0.2, seed=9)
    free = GaussianVNCE(penalty=None, random_state=0).fit(X)
    held = GaussianVNCE(penalty=3.0, penalty_kind="ridge", random_state=0).fit(X)
    off = ~np.eye(3, dtype=bool)
    assert (
        np.abs(held.partial_correlation_[off]).sum() < np.abs(free.partial_correlation_[off]).sum()
    )
    assert held.penalty_ == 3.0


def test_wider_noise_is_told_apart_more_easily_and_estimates_the_same() -> None:
    X = table(2000, 0.2, seed=13)
    near = GaussianVNCE(penalty=None, random_state=0).fit(X)
    wide = GaussianVNCE(penalty=None, noise_scale=3.0, random_state=0).fit(X)
    assert near.diagnostics_.mean_classification == pytest.approx(10 / 11, abs=0.01)
    assert wide.diagnostics_.mean_classification < near.diagnostics_.mean_classification
    # Five standard errors of maximum likelihood, of complete rows and of the two thirds and more
    # that have both columns; wide noise adds as much again.
    K = near.precision_
    errors = np.sqrt((np.outer(np.diag(K), np.diag(K)) + K**2) / (0.64 * len(X)))
    assert (np.abs(wide.precision_ - K) < 5 * errors).all()


@pytest.mark.slow
def test_separated_noise_is_reported_in_place_of_a_success() -> None:
    # Noise a hundred times as wide hardly ever falls where the data are.
    fitted = GaussianVNCE(penalty=None, noise_scale=100.0, random_state=0).fit(
        table(200, 0.0, seed=14)
    )
    assert fitted.diagnostics_.mean_classification < 0.3
    assert "noise and data hardly overlap" in fitted.message_
    assert "noise-separated" in {warning.code for warning in fitted.warnings_}


def test_a_fit_says_how_it_ended() -> None:
    X = table(100, 0.2, seed=10)
    assert GaussianVNCE(penalty=None, max_iter=1).fit(X).status_ is FitStatus.MAX_ITERATIONS
    cancelled = GaussianVNCE(penalty=None).fit(X, on_step=lambda step: True)
    assert cancelled.status_ is FitStatus.CANCELLED
    assert np.isfinite(cancelled.precision_).all()
    fitted = GaussianVNCE(penalty=None, random_state=0).fit(X)
    assert fitted.status_ is FitStatus.CONVERGED
    assert (fitted.precision_ == fitted.precision_.T).all()
    assert fitted.diagnostics_.is_positive_definite
    assert fitted.diagnostics_.separated_share == 0
    assert fitted.diagnostics_.num_missing == np.isnan(X).sum()


@pytest.mark.slow
def test_equal_columns_end_without_a_success_and_a_penalty_holds_them() -> None:
    X = np.random.default_rng(0).normal(size=(100, 4))
    X[:, 3] = X[:, 0]
    free = GaussianVNCE(penalty=None, random_state=0).fit(X)
    assert free.status_ is not FitStatus.CONVERGED
    assert np.isfinite(free.precision_).all()
    assert "duplicate-columns" in {warning.code for warning in free.warnings_}
    assert GaussianVNCE(penalty=1.0, random_state=0).fit(X).converged_


def test_a_pair_that_was_never_seen_does_not_stop_the_fit() -> None:
    X = np.random.default_rng(1).normal(size=(200, 3))
    X[:100, 0] = np.nan
    X[100:, 1] = np.nan
    fitted = GaussianVNCE(penalty=None, random_state=0).fit(X)
    assert fitted.converged_
    assert np.isfinite(fitted.precision_).all()
    assert "pair-never-observed" in {warning.code for warning in fitted.warnings_}


def test_the_same_seed_gives_the_same_fit_and_another_another() -> None:
    X = table(100, 0.2, seed=11)
    first, again, other = (
        GaussianVNCE(penalty=None, random_state=s).fit(X).precision_ for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty_kind": "lasso"}, "`penalty_kind` must be one of 'auto', 'adaptive', 'ridge'"),
        ({"selection": "ebic"}, "`selection='ebic'` needs `penalty_kind='l1'`"),
        ({"penalties": [1.0], "penalty": None}, "`penalties` needs `penalty='auto'`"),
        ({"noise_scale": 1e300}, "`noise_scale` must be a number from 0.001 to 1000"),
        ({"noise_ratio": 0}, "`noise_ratio` must be a whole number"),
        ({"tol": 2.0}, "`tol` must be a number between 0 and 1"),
        ({"column_transform": "sqrt"}, "The transform 'sqrt' needs values of at least 0"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(parameters: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GaussianVNCE(**parameters).fit(table(50, 0.1, seed=12))


def test_as_many_parameters_as_rows_need_a_penalty() -> None:
    X = np.random.default_rng(0).normal(size=(10, 3))
    with pytest.raises(
        ValueError, match=r"`penalty` must be 'auto' or at least .* 10 parameters and 10 rows"
    ):
        GaussianVNCE(penalty=None).fit(X)
    assert GaussianVNCE(penalty=1.0, random_state=0).fit(X).converged_


@pytest.mark.slow
@parametrize_with_checks([GaussianVNCE(penalty=1.0, random_state=0)])
def test_it_passes_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
def test_a_search_that_is_cut_short_is_no_convergence() -> None:
    # Nearly collinear columns of very different size: steps are cut by the line search for long.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8)) @ np.diag(np.geomspace(1, 1e-3, 8)) @ rng.normal(size=(8, 8))
    X[rng.random(X.shape) < 0.3] = np.nan
    free = GaussianVNCE(penalty=None, random_state=0).fit(X)
    assert free.status_ is FitStatus.MAX_ITERATIONS
    assert np.isfinite(free.precision_).all()
    # In scaled columns a maximum has next to no slope; converged means that.
    held = GaussianVNCE(penalty=1.0, tol=1e-5, random_state=0).fit(X)
    assert held.converged_
    assert held.diagnostics_.gradient_norm < 1e-3
