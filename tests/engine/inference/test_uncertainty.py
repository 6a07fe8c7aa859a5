"""Partial correlations without the penalty's bias, and their standard errors."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vnce_engine import GaussianVNCE, TruncatedGaussianNCE, TruncatedGaussianVNCE
from vnce_engine.contrastive.gaussian_problem import GaussianProblem
from vnce_engine.contrastive.truncated_problem import Problem
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.information import to_matrix, to_slope
from vnce_engine.inference.uncertainty import _Pairs
from vnce_engine.pipeline import fit as pipeline
from vnce_engine.runtime.progress import Progress

FloatArray = NDArray[np.float64]

NUM_COLUMNS = 4
COVARIANCE = 0.5 ** np.abs(np.subtract.outer(np.arange(NUM_COLUMNS), np.arange(NUM_COLUMNS)))


def normal_table(num_rows: int, seed: int = 0) -> FloatArray:
    """Return rows of correlated columns, all but surely above zero."""
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal(np.full(NUM_COLUMNS, 8.0), COVARIANCE, num_rows)


def debiased(model: GaussianVNCE | TruncatedGaussianVNCE, field: str) -> FloatArray:
    """Return a field of all edges as a matrix."""
    matrix = np.zeros((NUM_COLUMNS, NUM_COLUMNS))
    for edge in model.edges_:
        matrix[edge.source, edge.target] = matrix[edge.target, edge.source] = getattr(edge, field)
    return matrix


@pytest.mark.parametrize("problem_class", [Problem, GaussianProblem])
def test_the_scores_of_all_rows_are_the_slope_of_the_terms(
    problem_class: type[Problem] | type[GaussianProblem],
) -> None:
    X = normal_table(60)
    X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    generator = torch.Generator().manual_seed(0)
    problem = problem_class.prepare(Observations.from_array(X), 3, "sobol", generator)
    augmented = problem.start(has_linear=True)
    sample = problem.sample
    sample.redraw(augmented)
    everyone = torch.ones(problem.num_rows, dtype=torch.bool)
    scores = sample.scores(augmented, everyone)
    slope = to_slope(sample.terms(augmented, Progress(None))[1])
    torch.testing.assert_close(scores.sum(dim=0), slope, rtol=1e-10, atol=1e-8)
    some = torch.arange(problem.num_rows) % 3 == 1
    torch.testing.assert_close(sample.scores(augmented, some), scores[some])


def test_changes_of_partial_correlations_are_their_derivatives() -> None:
    rng = np.random.default_rng(2)
    square = torch.from_numpy(rng.normal(size=(5, 5)))
    augmented = square @ square.mT + torch.eye(5, dtype=torch.float64)
    pairs = _Pairs.of(augmented)
    direction = torch.from_numpy(rng.normal(size=(15, 1)))
    step = 1e-6
    moved = [_Pairs.of(augmented + to_matrix(s * direction[:, 0], 5)) for s in (step, -step)]
    numerical = (moved[0].correlation - moved[1].correlation) / (2 * step)
    torch.testing.assert_close(pairs.change(direction)[:, 0], numerical, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("estimator", [GaussianVNCE, TruncatedGaussianVNCE])
def test_of_a_complete_table_they_are_about_those_of_maximum_likelihood(
    estimator: type[GaussianVNCE] | type[TruncatedGaussianVNCE],
) -> None:
    """Far from zero both models are the Gaussian, of which rho and (1 - rho²) / sqrt(n) are known.

    Against fifty noise rows a data row, which leaves NCE a variance of 1.1 times as much at most.
    The penalty halves the interactions; the step brings them back.
    """
    num_rows = 2_000
    X = normal_table(num_rows)
    model = estimator(penalty=3.0, penalty_kind="ridge", noise_ratio=50, random_state=1).fit(X)
    inverse = np.linalg.inv(np.cov(X.T))
    scale = np.sqrt(np.diag(inverse))
    of_sample = -inverse / np.outer(scale, scale)
    off = ~np.eye(NUM_COLUMNS, dtype=bool)
    expected = (1 - of_sample**2) / math.sqrt(num_rows)
    shrunk = np.abs(model.partial_correlation_ - of_sample)[off].max()
    left = np.abs(debiased(model, "debiased") - of_sample)[off].max()
    assert left < 0.5 * expected[off].min()
    assert left < 0.2 * shrunk
    ratio = debiased(model, "standard_error")[off] / expected[off]
    assert (np.abs(ratio - 1) < 0.1).all()


def test_without_a_penalty_there_is_nothing_to_take_off() -> None:
    model = GaussianVNCE(penalty=None, random_state=0).fit(normal_table(400))
    off = ~np.eye(NUM_COLUMNS, dtype=bool)
    change = np.abs(debiased(model, "debiased") - model.partial_correlation_)[off]
    assert (change < 0.01 * debiased(model, "standard_error")[off]).all()


def test_the_order_of_columns_changes_nothing() -> None:
    X = normal_table(300)
    X[::4, 2] = np.nan
    order = [2, 0, 3, 1]
    model = TruncatedGaussianVNCE(penalty=1.0).fit(X)
    reordered = TruncatedGaussianVNCE(penalty=1.0).fit(X[:, order])
    for field in ("debiased", "standard_error", "q_value"):
        matrix = debiased(model, field)[np.ix_(order, order)]
        np.testing.assert_allclose(debiased(reordered, field), matrix, rtol=1e-6, atol=1e-12)


def test_a_fit_that_has_not_converged_has_none_and_says_so() -> None:
    model = TruncatedGaussianVNCE(penalty=1.0, max_iter=1).fit(normal_table(100))
    assert not model.converged_
    assert model.no_uncertainty_ == "the fit has not converged"
    assert all(edge.debiased is None and edge.verdict is None for edge in model.edges_)


def test_too_many_parameters_for_a_matrix_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "MOST_PARAMETERS", 14)
    model = GaussianVNCE(penalty=1.0).fit(normal_table(100))
    assert model.no_uncertainty_ == "the model has more than 14 parameters"
    assert model.edges_[0].q_value is None


def test_filled_cells_are_not_taken_for_observed_ones() -> None:
    X = normal_table(100)
    assert TruncatedGaussianNCE(penalty=1.0).fit(X).no_uncertainty_ is None
    X[0, 0] = np.nan
    filled = TruncatedGaussianNCE(penalty=1.0).fit(X)
    assert filled.no_uncertainty_ == "missing cells were filled before the fit"
    assert filled.edges_[0].standard_error is None
    assert TruncatedGaussianNCE(penalty=1.0, imputation="drop").fit(X).no_uncertainty_ is None
