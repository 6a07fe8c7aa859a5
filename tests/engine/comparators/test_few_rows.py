"""Fewer rows than parameters: no estimate that is unbounded, and the right tool works."""

import re

import numpy as np
import pytest
import torch
from sklearn.covariance import graphical_lasso

from vnce_engine import (
    FitStatus,
    GaussianEM,
    TruncatedGaussianCD,
    TruncatedGaussianMLE,
    TruncatedGaussianPseudoLikelihood,
    TruncatedGaussianScoreMatching,
)
from vnce_engine.comparators.gaussian_em import Spread
from vnce_engine.comparators.pseudo_likelihood import PseudoLikelihood
from vnce_engine.comparators.score_matching import ScoreMatching, Weight
from vnce_engine.distributions.definiteness import inverse
from vnce_engine.distributions.expected_moments import IncompleteRows
from vnce_engine.penalties.boundedness import least_rows
from vnce_engine.runtime.progress import Progress
from vnce_engine.simulate import mask_completely_at_random

NUM_COLUMNS = 12
TRUNCATED = [
    TruncatedGaussianMLE,
    TruncatedGaussianCD,
    TruncatedGaussianPseudoLikelihood,
    TruncatedGaussianScoreMatching,
]
SMOOTH = ["adaptive", "ridge"]
# The first two have no L1 penalty.
BOUNDED = [
    *((estimator, kind) for estimator in TRUNCATED for kind in SMOOTH),
    *((estimator, "l1") for estimator in TRUNCATED[2:]),
]


def table(num_rows: int, seed: int = 0) -> np.ndarray:
    return np.abs(np.random.default_rng(seed).normal(size=(num_rows, NUM_COLUMNS)) + 0.5)


@pytest.mark.parametrize("linear", ["zero", "free"])
@pytest.mark.parametrize("estimator", TRUNCATED)
def test_a_row_too_few_is_refused_and_names_what_would_do(estimator, linear):
    least = least_rows(NUM_COLUMNS, has_mean=linear == "free")
    with pytest.raises(ValueError, match=r"`penalty.*got .*unbounded.*") as refused:
        estimator(linear=linear).fit(table(least - 1))
    assert f"with {least - 1} rows, fewer than the {least}" in str(refused.value)
    assert "at least 0." in str(refused.value)


@pytest.mark.parametrize("linear", ["zero", "free"])
@pytest.mark.parametrize("estimator", TRUNCATED[2:])
def test_a_row_more_is_bounded(estimator, linear):
    least = least_rows(NUM_COLUMNS, has_mean=linear == "free")
    fitted = estimator(linear=linear).fit(table(least))
    assert fitted.converged_


@pytest.mark.slow
@pytest.mark.parametrize("linear", ["zero", "free"])
@pytest.mark.parametrize(("estimator", "kind"), BOUNDED)
def test_the_strength_that_is_named_bounds_the_estimates(estimator, kind, linear):
    weak = {"penalty": 1e-4, "penalty_kind": kind, "linear": linear, "random_state": 0}
    with pytest.raises(ValueError, match="unbounded") as refused:
        estimator(**weak).fit(table(8))
    (named, *_) = re.findall(r"at least ([0-9.]+)", str(refused.value))
    kind = "ridge" if "`penalty_kind` must be" in str(refused.value) else kind
    fitted = estimator(**{**weak, "penalty": float(named), "penalty_kind": kind}).fit(table(8))
    # Independent columns have K_ii of 1 / mean(x²) or 1 / var(x); without a bound it is 1e11 to
    # 1e18 of that.
    assert np.abs(fitted.precision_ * table(8).var(axis=0)).max() < 100
    if estimator in TRUNCATED[2:]:
        assert fitted.converged_


@pytest.mark.parametrize("growth", ["logarithmic", "linear"])
@pytest.mark.parametrize("has_linear", [False, True])
def test_objectives_grow_for_ever_along_what_rows_do_not_span(growth, has_linear):
    rows = torch.from_numpy(table(NUM_COLUMNS - 1 + has_linear).T.copy())
    extended = torch.cat([rows, torch.ones_like(rows[:1])]) if has_linear else rows
    v = torch.linalg.svd(extended.mT).Vh[-1]
    sample = (
        PseudoLikelihood.of(rows, rows.new_zeros(len(rows)))
        if growth == "logarithmic"
        else ScoreMatching.of(rows, rows.new_zeros(len(rows)), Weight.CAPPED, Progress(None))
    )

    def value(t: float) -> float:
        augmented = torch.zeros(NUM_COLUMNS + 1, NUM_COLUMNS + 1, dtype=torch.float64)
        augmented[: len(v), : len(v)] = t * torch.outer(v, v)
        augmented[:-1, :-1] += torch.eye(NUM_COLUMNS)
        augmented[-1, -1] = 0.0
        return float(sample.terms(augmented, Progress(None))[0]) / rows.shape[1]

    values = [value(t) for t in (1e4, 1e6, 1e8)]
    steps = np.diff(values)
    if growth == "linear":
        assert steps[1] == pytest.approx(100 * steps[0], rel=0.05)
    else:
        # ½ log 100 a column, all of them in the direction's span.
        assert steps == pytest.approx([NUM_COLUMNS / 2 * np.log(100)] * 2, rel=0.05)


def test_a_gaussian_without_a_penalty_is_refused_and_told_of_the_lasso():
    with pytest.raises(ValueError, match="`penalty` must be 'ebic', 'cv' or a positive number"):
        GaussianEM().fit(table(NUM_COLUMNS))
    assert GaussianEM().fit(table(NUM_COLUMNS + 1)).converged_


def test_a_lasso_of_a_complete_table_is_that_of_its_covariance():
    X = table(8)
    fitted = GaussianEM(penalty=0.3).fit(X)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    _, expected = graphical_lasso(standard.T @ standard / len(X), alpha=0.3)
    scale = X.std(axis=0)
    # The dual gap at which the lasso ends is 1e-4.
    assert fitted.precision_ * np.outer(scale, scale) == pytest.approx(expected, abs=1e-2)
    assert fitted.converged_


def test_a_lasso_with_missing_cells_is_stationary_and_its_path_never_falls():
    strength = 0.3
    X = mask_completely_at_random(table(12), 0.2, np.random.default_rng(3))
    fitted = GaussianEM(penalty=strength).fit(X)
    assert fitted.converged_
    # Each M-step is solved to a dual gap of 1e-4.
    assert (np.diff(fitted.objective_path_) > -1e-4).all()

    mean, scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    standard = torch.from_numpy((X - mean) / scale)
    K = torch.from_numpy(fitted.precision_ * np.outer(scale, scale))
    spread = Spread(inverse(K), K)
    at = torch.from_numpy((fitted.mean_ - mean) / scale)
    expected = IncompleteRows(standard).expected(at, spread.precision)
    second = expected.second - torch.outer(expected.first, expected.first)
    slope = (second - spread.covariance).numpy()
    off_diagonal = ~np.eye(NUM_COLUMNS, dtype=bool)
    # EM ends where an iteration gains less than 1e-4 nats a row: slopes of about its root are left.
    assert np.abs(slope[off_diagonal]).max() < strength + 0.02
    edges = off_diagonal & (fitted.precision_ != 0)
    assert slope[edges] == pytest.approx(-strength * np.sign(fitted.precision_[edges]), abs=0.02)


@pytest.mark.slow
def test_held_out_rows_choose_a_lasso_that_finds_a_chain():
    d = 30
    K = np.eye(d) + 0.45 * (np.diag([1.0] * (d - 1), 1) + np.diag([1.0] * (d - 1), -1))
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal(np.zeros(d), np.linalg.inv(K), 25)
    fitted = GaussianEM(penalty="cv", random_state=0).fit(X)
    assert fitted.converged_
    score = np.abs(fitted.partial_correlation_)
    pairs = np.triu_indices(d, 1)
    edge = (K != 0)[pairs]
    wins = score[pairs][edge][:, None] - score[pairs][~edge]
    area = ((wins > 0) + 0.5 * (wins == 0)).mean()
    # Of random scores the area has mean ½ and a variance of at most (m + n + 1) / (12 m n) without
    # ties, and less with them.
    m, n = edge.sum(), (~edge).sum()
    assert area > 0.5 + 5 * np.sqrt((m + n + 1) / (12 * m * n))


def test_a_fit_that_is_cancelled_has_independent_columns():
    fitted = GaussianEM(penalty="cv").fit(table(8), on_step=lambda step: True)
    assert fitted.status_ is FitStatus.CANCELLED
    assert (fitted.precision_ == np.diag(np.diag(fitted.precision_))).all()


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["ebic", "cv", 0.3])
def test_a_covariance_that_missing_cells_make_singular_has_a_lasso(penalty):
    # Rows are more than columns, but EM without a penalty runs to a singular covariance.
    X = mask_completely_at_random(table(20), 0.3, np.random.default_rng(1))
    assert GaussianEM().fit(X).status_ is FitStatus.NON_FINITE
    fitted = GaussianEM(penalty=penalty, random_state=0).fit(X)
    assert fitted.converged_
    above = fitted.partial_correlation_[np.triu_indices(NUM_COLUMNS, k=1)]
    assert np.abs(above).max() < 0.9
