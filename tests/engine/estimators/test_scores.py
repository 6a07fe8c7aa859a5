"""Scores by which searches compare fits."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import multivariate_normal, truncnorm
from sklearn.model_selection import GridSearchCV

from vnce_engine import (
    GaussianEM,
    GaussianVNCE,
    TruncatedGaussianScoreMatching,
    TruncatedGaussianVNCE,
)
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.estimators.scores import likelihood_score, predictive_score
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)

FAR = torch.full((6,), torch.inf, dtype=torch.float64)


def model_of(precision: np.ndarray, linear: np.ndarray | None = None) -> QuadraticModel:
    h = np.zeros(len(precision)) if linear is None else linear
    return QuadraticModel(torch.from_numpy(precision), torch.from_numpy(h), torch.tensor(0.0))


def held_out(fraction: float, n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Return K of a ring of six columns, and rows of it."""
    rng = np.random.default_rng(4)
    precision = ring_precision(6, rng)
    rows = sample_truncated_gaussian(precision, n, rng)
    return precision, mask_completely_at_random(rows, fraction, rng)


def test_of_complete_rows_it_is_the_pseudo_likelihood() -> None:
    K = np.array([[2.0, 0.5, -0.4], [0.5, 1.0, 0.2], [-0.4, 0.2, 1.5]])
    h = np.array([0.3, -1.0, 2.0])
    rows = np.random.default_rng(0).gamma(2.0, size=(7, 3))
    expected = 0.0
    for row in rows:
        for j in range(3):
            others = np.delete(np.arange(3), j)
            sigma = K[j, j] ** -0.5
            mu = (h[j] - K[j, others] @ row[others]) / K[j, j]
            expected += truncnorm.logpdf(row[j], -mu / sigma, np.inf, loc=mu, scale=sigma)
    score = predictive_score(model_of(K, h), rows, FAR[:3])
    assert score == pytest.approx(expected / 21, rel=1e-10)


def test_a_cell_s_density_beside_a_missing_one_integrates_to_one() -> None:
    K = np.array([[1.0, 0.6], [0.6, 1.0]])

    def density(x: float) -> float:
        # One observed cell, so that the score of the table is its log density.
        return float(np.exp(predictive_score(model_of(K), np.array([[x, np.nan]]), FAR[:2])))

    assert quad(density, 0, 12, epsrel=1e-8)[0] == pytest.approx(1, rel=1e-6)


def test_gaussian_scores_are_log_densities_of_the_observed_cells() -> None:
    covariance = np.array([[2.0, 0.5, -0.4], [0.5, 1.0, 0.2], [-0.4, 0.2, 1.5]])
    mean = np.array([1.0, -2.0, 3.0])
    Y = np.array([[0.5, -1.0, 2.0], [np.nan, -2.5, 4.0], [np.nan] * 3, [1.0, np.nan, np.nan]])
    kept = [[0, 1, 2], [1, 2], [0]]
    expected = np.mean(
        [
            multivariate_normal(mean[o], covariance[np.ix_(o, o)]).logpdf(row[o])
            for row, o in zip(Y[[0, 1, 3]], kept, strict=True)
        ]
    )
    precision = torch.from_numpy(np.linalg.inv(covariance))
    assert likelihood_score(torch.from_numpy(mean), precision, Y) == pytest.approx(expected)


@pytest.mark.parametrize("fraction", [0.0, 0.3])
def test_the_truth_scores_higher_than_independence_and_than_half_or_twice_its_strengths(
    fraction: float,
) -> None:
    K, rows = held_out(fraction)
    diagonal = np.diag(np.diag(K))
    truth = predictive_score(model_of(K), rows, FAR)
    # n = 2,000 rows, score against score in the same rows. In twenty parts of them the differences
    # have standard errors of .0037 (independence) and .0022; their means are 15 and 4 to 6 of them.
    assert truth > predictive_score(model_of(diagonal), rows, FAR) + 5 * 0.0037
    for factor in (0.5, 1.5):
        other = diagonal + factor * (K - diagonal)
        assert truth > predictive_score(model_of(other), rows, FAR)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        TruncatedGaussianVNCE(linear="zero", random_state=0, penalty=1.0),
        TruncatedGaussianScoreMatching(random_state=0, max_iter=3),
        GaussianVNCE(random_state=0, penalty=1.0),
    ],
)
def test_a_search_over_penalties_ranks_a_ruinous_one_last(estimator: Any) -> None:
    _, rows = held_out(0.2, n=150)
    search = GridSearchCV(estimator, {"penalty": [0.3, 1e4], "penalty_kind": ["ridge"]}, cv=2)
    search.fit(rows)
    assert search.best_params_["penalty"] == 0.3
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert scores[0] > scores[1]


def test_em_s_score_of_its_own_table_is_its_likelihood() -> None:
    _, rows = held_out(0.2, n=300)
    model = GaussianEM(tol=1e-10).fit(rows)
    assert model.score(rows) == pytest.approx(model.objective_path_[-1], abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [GaussianEM(), TruncatedGaussianScoreMatching(max_iter=3)])
def test_a_table_with_nothing_observed_has_no_score(estimator: Any) -> None:
    _, rows = held_out(0.2, n=100)
    model = estimator.fit(rows)
    with pytest.raises(ValueError, match="No observed value"):
        model.score(np.full((3, 6), np.nan))
