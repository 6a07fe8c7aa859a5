"""Comparators decide whether they need a linear term, or say that one is missing."""

import numpy as np
import pytest
import torch

from vnce_engine import (
    FitStatus,
    TruncatedGaussianCD,
    TruncatedGaussianMLE,
    TruncatedGaussianPseudoLikelihood,
    TruncatedGaussianScoreMatching,
)
from vnce_engine.comparators.linear_choice import is_too_far, largest_distance
from vnce_engine.comparators.pseudo_likelihood import PseudoLikelihood
from vnce_engine.comparators.score_matching import JudgedScoreMatching, Weight
from vnce_engine.runtime.progress import Progress
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)

ESTIMATORS = [
    TruncatedGaussianPseudoLikelihood,
    TruncatedGaussianScoreMatching,
    TruncatedGaussianMLE,
    TruncatedGaussianCD,
]
SOLVED = ESTIMATORS[:2]


def far_table(low: float, high: float, share: float = 0.0) -> np.ndarray:
    """Return 600 rows of five independent columns so many standard deviations from zero."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(600, 5)) + rng.uniform(low, high, size=5))
    return mask_completely_at_random(X, share, rng)


def largest_pair(estimator) -> float:
    return float(np.abs(estimator.partial_correlation_[np.triu_indices(5, 1)]).max())


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_columns_far_from_zero_free_the_linear_term(estimator, share):
    X = far_table(5, 15, share)
    options = {"max_iter": 20} if estimator is not TruncatedGaussianMLE else {}
    fitted = estimator(random_state=0, **options).fit(X)
    assert (fitted.linear_choice_, fitted.linear_evidence_) == ("free", None)
    assert "linear-term-needed" not in [warning.code for warning in fitted.warnings_]
    if estimator is not TruncatedGaussianCD:  # whose steps do not find their way from zero
        # 5 standard errors of a partial correlation that is zero, of pairs seen in (1 - share)².
        assert largest_pair(fitted) < 5 / np.sqrt(600 * (1 - share) ** 2)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_linear_term_that_was_left_out_is_a_warning_that_names_the_columns(estimator):
    X = far_table(5, 15)
    X[:, 1] = np.abs(np.random.default_rng(1).normal(size=600))
    fitted = estimator(linear="zero", max_iter=5, random_state=0).fit(X)
    (warning,) = [w for w in fitted.warnings_ if w.code == "linear-term-needed"]
    assert warning.columns == ("column 0", "column 2", "column 3", "column 4")
    assert '`linear="auto"`' in warning.message


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("estimator", SOLVED)
def test_held_out_rows_free_a_linear_term_that_is_no_matter_of_distance(estimator, share):
    X = far_table(1.8, 2.5, share)
    assert not is_too_far(X).any()
    fitted = estimator(random_state=0).fit(X)
    evidence = fitted.linear_evidence_
    assert fitted.linear_choice_ == "free"
    assert evidence.gain > 2 * evidence.standard_error > 0


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("estimator", SOLVED)
def test_the_papers_model_keeps_h_at_zero_and_its_very_estimates(estimator, share):
    rng = np.random.default_rng(3)
    X = sample_truncated_gaussian(ring_precision(8, rng), 400, rng)
    X = mask_completely_at_random(X, share, rng)
    options = {"max_iter": 25, "tol": 0.05, "random_state": 0}
    chosen = estimator(**options).fit(X)
    told = estimator(linear="zero", **options).fit(X)
    assert chosen.linear_choice_ == "zero"
    assert chosen.linear_evidence_.gain <= 2 * chosen.linear_evidence_.standard_error
    assert (chosen.precision_ == told.precision_).all()


@pytest.mark.release
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_the_papers_model_keeps_h_at_zero_nearly_always(share):
    num_tables, num_free = 30, 0
    for seed in range(num_tables):
        rng = np.random.default_rng(100 + seed)
        X = sample_truncated_gaussian(ring_precision(5, rng), 400, rng)
        X = mask_completely_at_random(X, share, rng)
        fitted = TruncatedGaussianScoreMatching(random_state=seed, max_iter=1).fit(X)
        num_free += fitted.linear_choice_ == "free"
    # A gain of mean zero exceeds two standard errors in 2.3 %; five parameters too many lower it.
    # 30 * .023 = .7, and with five standard deviations of .8 below 5.
    assert num_free <= 4


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 5, 20])
def test_without_a_linear_term_no_column_is_further_from_zero_than_the_bound(d):
    # Mutual attraction brings columns out, and their direction nearer to a constant.
    K = np.eye(d) - 0.9 / (d - 1) * (1 - np.eye(d))
    X = sample_truncated_gaussian(K, 20_000, np.random.default_rng(0), thinning=20)
    ratio = X.mean(axis=0) / X.std(axis=0)
    # The standard error of such a ratio r, of about normal columns, is √((1 + r²/2) / n), and ten
    # times as many rows as there are independent ones (250 chains, correlated over sweeps).
    error = np.sqrt((1 + ratio**2 / 2) / (len(X) / 10))
    assert (ratio < largest_distance(d) + 5 * error).all()
    assert not is_too_far(X).any()
    # Of a chi variable with d degrees of freedom the variance is a little below ½.
    assert np.sqrt(2 * d - 1) < largest_distance(d) < np.sqrt(2 * d)


@pytest.mark.parametrize("kind", list(Weight))
def test_the_objective_is_the_sum_over_its_cells(kind):
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(np.abs(rng.normal(size=(4, 50))))
    A = torch.from_numpy(rng.normal(size=(5, 5)))
    A = A @ A.T + torch.eye(5)
    for sample in (
        PseudoLikelihood.of(rows, rows.new_zeros(len(rows))),
        JudgedScoreMatching.read(rows, kind, Progress(None)),
    ):
        value, _ = sample.terms(A, Progress(None))
        assert float(sample.cell_values(A).sum()) == pytest.approx(float(value), rel=1e-12)


def test_a_fit_that_is_cancelled_while_it_decides_says_so():
    rng = np.random.default_rng(3)
    X = sample_truncated_gaussian(ring_precision(8, rng), 400, rng)
    fitted = TruncatedGaussianPseudoLikelihood(random_state=0).fit(X, on_step=lambda step: True)
    assert fitted.status_ is FitStatus.CANCELLED
    assert fitted.linear_choice_ == "zero"


@pytest.mark.parametrize("estimator", SOLVED)
def test_rows_that_do_not_suffice_for_a_linear_term_leave_it_out(estimator):
    X = np.abs(np.random.default_rng(0).normal(size=(12, 12)))
    assert estimator().fit(X).linear_choice_ == "zero"
