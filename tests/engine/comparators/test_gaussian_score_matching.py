"""Marginal score matching of a Gaussian: its objective, its limits, and known parameters."""

import numpy as np
import pytest
import torch

from vnce_engine import FitStatus, GaussianEM, GaussianScoreMatching
from vnce_engine.comparators.marginal_score import MarginalScore, row_scores
from vnce_engine.simulate import mask_completely_at_random

PRECISION = np.array(
    [[1.5, 0.5, 0.0, 0.2], [0.5, 1.2, -0.4, 0.0], [0.0, -0.4, 1.0, 0.3], [0.2, 0.0, 0.3, 1.1]]
)
MEAN = np.array([3.0, -1.0, 0.0, 10.0])


def rows(n: int, share: float = 0.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.multivariate_normal(MEAN, np.linalg.inv(PRECISION), n)
    X = mask_completely_at_random(X, share, rng)
    return X[~np.isnan(X).all(axis=1)]


def pairs(matrix: np.ndarray) -> np.ndarray:
    return matrix[np.tril_indices(4)]


def matrix_of(entries: np.ndarray) -> np.ndarray:
    lower = np.zeros((4, 4))
    lower[np.tril_indices(4)] = entries
    return lower + np.tril(lower, -1).T


def test_without_missing_cells_and_penalty_k_is_the_inverse_covariance():
    X = rows(300) * [1.0, 1e3, 1e-3, 1.0]
    fitted = GaussianScoreMatching().fit(X)
    assert fitted.converged_
    assert fitted.precision_ @ np.cov(X.T, bias=True) == pytest.approx(np.eye(4), abs=1e-6)
    assert fitted.mean_ == pytest.approx(X.mean(axis=0), rel=1e-9)
    assert (fitted.precision_ == fitted.precision_.T).all()


def test_a_ridge_of_a_complete_table_solves_its_equation():
    X = rows(300)
    fitted = GaussianScoreMatching(penalty=0.5, tol=1e-8).fit(X)
    scale = X.std(axis=0)
    K = fitted.precision_ * np.outer(scale, scale)
    S = np.corrcoef(X.T)
    slope = 0.5 * (S @ K + K @ S) - np.eye(4)
    weight = 0.5 * 1000 / 300
    off_diagonal = ~np.eye(4, dtype=bool)
    # ½ weight kappa² a pair, whose two entries share its slope.
    assert slope[off_diagonal] == pytest.approx(-0.5 * weight * K[off_diagonal], abs=1e-6)


def test_a_row_has_the_score_of_the_marginal_density_of_its_observed_cells():
    X = rows(40, 0.4)
    values = row_scores(X, torch.from_numpy(MEAN), torch.from_numpy(PRECISION))
    covariance = np.linalg.inv(PRECISION)
    for row, value in zip(X, values, strict=True):
        o = ~np.isnan(row)
        marginal = np.linalg.inv(covariance[np.ix_(o, o)])
        score = -marginal @ (row - MEAN)[o]
        # ½ |s|² and the divergence of s, which is minus the trace of the precision.
        assert value == pytest.approx(-(0.5 * score @ score - np.trace(marginal)), rel=1e-10)


def test_the_objective_is_the_mean_over_rows_and_has_the_gradient_it_says():
    X = rows(60, 0.4)
    objective = MarginalScore.of(X)

    def loss(entries: torch.Tensor) -> float:
        K = torch.from_numpy(matrix_of(entries[:10].numpy()))
        return -float(row_scores(X, entries[10:], K).mean())

    at = torch.from_numpy(np.concatenate([pairs(PRECISION), MEAN + 0.3]))
    value, by_precision, by_mean = objective.terms(at[10:], torch.from_numpy(PRECISION))
    assert value == pytest.approx(loss(at), rel=1e-10)
    step = 1e-6
    numerical = np.array(
        [(loss(at + step * e) - loss(at - step * e)) / (2 * step) for e in torch.eye(14).double()]
    )
    by_entry = pairs(by_precision.numpy() * (2 - np.eye(4)))
    # Central differences: step² of truncation, and 1e-16 / step of rounding, of values of about 1.
    assert np.concatenate([by_entry, by_mean]) == pytest.approx(numerical, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.3, 0.5])
def test_cells_missing_at_random_leave_the_truth_within_its_standard_errors(share):
    X = rows(20_000, share)
    # Scaled by the truth, the estimator's own units differ from it by a sampling error alone.
    fitted = GaussianScoreMatching().fit(X)
    assert fitted.converged_
    scale = np.nanstd(X, axis=0)
    standard = (X - MEAN) / scale
    truth = torch.from_numpy(PRECISION * np.outer(scale, scale))
    point = np.concatenate([pairs(truth.numpy()), np.zeros(4)])

    def scores(entries: np.ndarray) -> np.ndarray:
        K = torch.from_numpy(matrix_of(entries[:10]))
        return row_scores(standard, torch.from_numpy(entries[10:].copy()), K)

    def slope(entries: np.ndarray) -> np.ndarray:
        K = torch.from_numpy(matrix_of(entries[:10]))
        _, by_precision, by_mean = MarginalScore.of(standard).terms(
            torch.from_numpy(entries[10:].copy()), K
        )
        return np.concatenate([pairs(by_precision.numpy() * (2 - np.eye(4))), by_mean])

    steps = 1e-4 * np.eye(14)
    by_row = np.array([(scores(point + e) - scores(point - e)) / 2e-4 for e in steps])
    hessian = np.array([(slope(point + e) - slope(point - e)) / 2e-4 for e in steps])
    inverse = np.linalg.inv(0.5 * (hessian + hessian.T))
    # The sandwich of an M-estimator.
    error = np.sqrt(np.diag(inverse @ np.cov(by_row) @ inverse) / len(X))
    estimate = pairs(fitted.precision_ * np.outer(scale, scale))
    assert (np.abs(estimate - point[:10]) < 5 * error[:10]).all()
    assert (np.abs((fitted.mean_ - MEAN) / scale) < 5 * error[10:]).all()


@pytest.mark.slow
def test_held_out_rows_choose_the_ridge_and_leave_their_path():
    fitted = GaussianScoreMatching(penalty="cv", random_state=0).fit(rows(300, 0.5))
    (chosen,) = [step for step in fitted.penalty_path_ if step.chosen]
    best = max(fitted.penalty_path_, key=lambda step: step.criterion)
    assert (fitted.penalty_, fitted.selection_) == (chosen.strength, "held-out")
    assert chosen.strength >= best.strength
    assert best.criterion - chosen.criterion <= chosen.standard_error
    assert fitted.penalty_kind_ == "ridge"
    again = GaussianScoreMatching(penalty=chosen.strength).fit(rows(300, 0.5))
    assert (again.precision_ == fitted.precision_).all()


@pytest.mark.slow
def test_fewer_rows_than_columns_need_a_ridge():
    X = np.random.default_rng(0).normal(size=(8, 12))
    with pytest.raises(ValueError, match=r"`penalty` must be at least 0.03 with 8 rows"):
        GaussianScoreMatching().fit(X)
    assert GaussianScoreMatching(penalty=0.03).fit(X).converged_
    assert GaussianScoreMatching(penalty="cv", random_state=0).fit(X).converged_


def test_a_cancelled_fit_says_so():
    fitted = GaussianScoreMatching(penalty="cv").fit(rows(100, 0.3), on_step=lambda step: True)
    assert fitted.status_ is FitStatus.CANCELLED
    assert np.isfinite(fitted.precision_).all()


def test_missing_cells_are_filled_by_their_conditional_mean():
    X = rows(200, 0.3)
    fitted = GaussianScoreMatching().fit(X)
    filled = fitted.impute(X)
    row = int(np.flatnonzero(np.isnan(X).sum(axis=1) == 1)[0])
    m, o = np.isnan(X[row]), ~np.isnan(X[row])
    K = fitted.precision_
    shift = -np.linalg.solve(K[np.ix_(m, m)], K[np.ix_(m, o)] @ (X[row] - fitted.mean_)[o])
    assert filled[row, m] == pytest.approx(fitted.mean_[m] + shift, rel=1e-9)


@pytest.mark.release
def test_a_star_of_which_most_cells_are_missing_is_ranked_better_than_by_likelihood():
    d, areas = 20, []
    K = np.eye(d)
    K[0, 1:] = K[1:, 0] = 0.3
    K[0, 0] = 1 + 19 * 0.3**2
    upper = np.triu_indices(d, 1)
    edge = (K != 0)[upper]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.multivariate_normal(np.zeros(d), np.linalg.inv(K), 1000)
        X = mask_completely_at_random(X, 0.7, rng)
        for estimator in (GaussianScoreMatching(penalty=1.0), GaussianEM()):
            score = np.abs(estimator.fit(X).precision_[upper])
            areas.append((score[edge][:, None] > score[~edge]).mean())
    scores, likelihood = np.array(areas).reshape(3, 2).T
    m, n = edge.sum(), (~edge).sum()
    # A standard error of an area of .95, of as many pairs (Hanley and McNeil, 1982).
    a = 0.95
    exponential = (
        a * (1 - a) + (m - 1) * (a / (2 - a) - a**2) + (n - 1) * (2 * a**2 / (1 + a) - a**2)
    )
    error = np.sqrt(exponential / (m * n) / 3)
    assert scores.mean() > 0.95 - 2 * error
    assert scores.mean() > likelihood.mean() + 2 * error
