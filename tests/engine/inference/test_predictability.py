"""How much of a column the others explain."""

import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

from vnce_engine import GaussianEM, GaussianVNCE, TruncatedGaussianScoreMatching
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.inference.predictability import shares_explained, squared_errors
from vnce_engine.simulate import sample_truncated_gaussian

PRECISION = np.array([[1.5, -0.7, 0.0], [-0.7, 1.2, 0.4], [0.0, 0.4, 1.0]])


def normal_rows(num_rows: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal([3.0, 1e4, -2.0], np.linalg.inv(PRECISION), num_rows)


def model(linear: np.ndarray) -> QuadraticModel:
    return QuadraticModel(
        torch.from_numpy(PRECISION), torch.from_numpy(linear), torch.tensor(0.0).double()
    )


def test_of_a_complete_normal_table_by_maximum_likelihood_it_is_that_of_least_squares() -> None:
    X = normal_rows(150)
    found = GaussianEM(penalty=None).fit(X).predictability(X)
    for j, share in enumerate(found):
        others = np.delete(X, j, axis=1)
        assert share is not None
        assert share.value == pytest.approx(
            LinearRegression().fit(others, X[:, j]).score(others, X[:, j]), rel=1e-6
        )


def test_errors_of_truncated_columns_are_those_of_their_conditional_means() -> None:
    """By quadrature: the mean of a column given the others, whatever its weight."""
    linear = np.array([0.3, -0.5, 0.2])
    rows = np.array([[0.2, 1.0, 0.5], [2.0, 0.1, 3.0]])
    found = squared_errors(model(linear), torch.from_numpy(rows), is_truncated=True).numpy()
    grid = np.linspace(0, 30, 300_001)
    for i, j in np.ndindex(rows.shape):
        pull = linear[j] - np.delete(PRECISION[j], j) @ np.delete(rows[i], j)
        weight = np.exp(-0.5 * PRECISION[j, j] * grid**2 + pull * grid)
        mean = (grid * weight).sum() / weight.sum()
        assert found[i, j] == pytest.approx((rows[i, j] - mean) ** 2, rel=1e-3)


def test_the_interval_is_that_of_the_ratio_over_rows() -> None:
    """Its standard error is that of many tables' shares."""
    rng = np.random.default_rng(0)
    spread, widths = [], []
    for _ in range(400):
        values = rng.gamma(3.0, size=(200, 1))
        errors = 0.4 * (values - 3.0) ** 2 * rng.uniform(0.5, 1.5, (200, 1))
        (share,) = shares_explained(values, errors)
        assert share is not None
        spread.append(share.value)
        widths.append(share.upper - share.value)
    assert np.mean(widths) / 1.96 == pytest.approx(np.std(spread), rel=0.15)
    assert np.mean(spread) == pytest.approx(0.6, abs=4 * np.std(spread) / math.sqrt(400))


def test_what_is_missing_beside_a_cell_takes_nothing_from_its_share() -> None:
    """Within four standard errors of the share in complete rows, with half of the others gone."""
    X = normal_rows(3_000)
    holes = X.copy()
    rng = np.random.default_rng(1)
    holes[:, 1:][rng.random((len(X), 2)) < 0.5] = np.nan
    estimator = GaussianVNCE(penalty=0.1).fit(X)
    whole, partly = estimator.predictability(X)[0], estimator.predictability(holes)[0]
    assert whole is not None
    assert partly is not None
    error = (whole.upper - whole.lower) / 3.92
    assert abs(partly.value - whole.value) < 4 * error
    # Given what is observed alone it would be far less.
    alone = np.corrcoef(X[:, 0], X[:, 1])[0, 1] ** 2 / 2
    assert alone < whole.value - 8 * error


def test_a_column_that_does_not_vary_and_an_indefinite_k_have_none() -> None:
    assert shares_explained(np.full((5, 1), 2.0), np.zeros((5, 1))) == [None]
    assert shares_explained(np.full((5, 1), np.nan), np.zeros((5, 1))) == [None]
    rng = np.random.default_rng(4)
    X = rng.exponential(size=(30, 4))
    X[:, 1] = X[:, 0] * rng.exponential(size=30)
    indefinite = TruncatedGaussianScoreMatching(penalty=None).fit(X)
    assert not indefinite.diagnostics_.is_positive_definite
    assert indefinite.predictability(X) == [None] * 4


def test_the_true_model_explains_what_it_does_in_large_tables() -> None:
    """Two halves of a table of truncated rows agree within five standard errors."""
    rng = np.random.default_rng(3)
    linear = np.array([0.3, 0.5, 0.2])
    rows = sample_truncated_gaussian(PRECISION, 8_000, rng, linear=linear)
    errors = squared_errors(model(linear), torch.from_numpy(rows), is_truncated=True).numpy()
    halves = [shares_explained(rows[k::2], errors[k::2]) for k in (0, 1)]
    for one, other in zip(*halves, strict=True):
        assert one is not None
        assert other is not None
        assert 0 < one.value < 1
        error = math.hypot(one.upper - one.value, other.upper - other.value) / 1.96
        assert abs(one.value - other.value) < 5 * error
