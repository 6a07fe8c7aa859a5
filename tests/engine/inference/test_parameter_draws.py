"""Draws of K and h from about their posterior."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from vnce_engine import GaussianVNCE, TruncatedGaussianVNCE
from vnce_engine.contrastive.gaussian_problem import GaussianProblem
from vnce_engine.contrastive.truncated_problem import Problem
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.information import to_matrix, upper_triangle
from vnce_engine.inference import parameter_draws as module
from vnce_engine.inference.parameter_draws import _excess, _moved, parameter_draws
from vnce_engine.inference.uncertainty import UnpenalisedStep
from vnce_engine.penalties.penalty import PenaltyKind

SIZE = 5
NO_EXCESS = torch.zeros(SIZE - 1, SIZE - 1, dtype=torch.float64)


def estimate(seed: int) -> Tensor:
    """Return A of four columns, K positive definite."""
    rng = np.random.default_rng(seed)
    square = torch.from_numpy(rng.normal(size=(SIZE, SIZE)))
    return square @ square.mT + torch.eye(SIZE, dtype=torch.float64)


def change(seed: int) -> Tensor:
    theta = torch.from_numpy(np.random.default_rng(seed).normal(size=15))
    return to_matrix(theta, SIZE)


def test_a_small_change_of_k_and_h_is_made_as_it_is() -> None:
    augmented, moved_by = estimate(1), change(2)
    step = 1e-6
    ends = [_moved(augmented, sign * step * moved_by, NO_EXCESS) for sign in (1, -1)]
    derivative = (ends[0] - ends[1]) / (2 * step)
    derivative[-1, -1] = moved_by[-1, -1]  # c stays
    torch.testing.assert_close(derivative, moved_by, rtol=1e-7, atol=1e-8)


def test_k_is_positive_definite_whatever_the_change() -> None:
    # Of five times as much the least eigenvalue would be lost in the rounding error of the largest.
    augmented, moved_by = estimate(1), 4 * change(2)
    assert torch.linalg.eigvalsh((augmented + moved_by)[:-1, :-1])[0] < 0
    moved = _moved(augmented, moved_by, NO_EXCESS)
    torch.testing.assert_close(moved, moved.mT, rtol=0, atol=0)
    assert torch.linalg.eigvalsh(moved[:-1, :-1])[0] > 0


def test_the_mean_of_draws_is_k_to_second_order() -> None:
    """Of changes and their opposites; what is left is of fourth order."""
    augmented, moved_by = estimate(1), 0.1 * change(2)
    precision = augmented[:-1, :-1]
    both = [moved_by, -moved_by]
    excess = _excess(precision, torch.stack(both)[:, :-1, :-1])

    def off(excess: Tensor) -> float:
        ends = [_moved(augmented, changed, excess)[:-1, :-1] for changed in both]
        return float((0.5 * (ends[0] + ends[1]) - precision).norm())

    assert off(excess) < 0.05 * off(NO_EXCESS)


@pytest.mark.slow
@pytest.mark.parametrize("num_clusters", [None, 25])
@pytest.mark.parametrize("kind", [PenaltyKind.RIDGE, PenaltyKind.CENTRED_RIDGE])
@pytest.mark.parametrize("problem_class", [Problem, GaussianProblem])
def test_changes_have_the_covariance_of_the_posterior_and_zeros_stay(
    problem_class: type[Problem] | type[GaussianProblem],
    kind: PenaltyKind,
    num_clusters: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """(J + R)⁻¹ / n in the entries that are not zero, from 20,000 draws.

    In clusters (J + R)⁻¹ (V + R) (J + R)⁻¹ / n, with V of the sums of their scores.
    """
    rng = np.random.default_rng(3)
    X = np.abs(rng.normal(size=(60, SIZE - 1)))
    X[rng.random(X.shape) < 0.3] = np.nan
    generator = torch.Generator().manual_seed(0)
    problem = problem_class.prepare(Observations.from_array(X), 3, "sobol", generator)
    augmented = problem.start(has_linear=True)
    augmented[0, 1] = augmented[1, 0] = 0.3
    estimated = problem.constraints(has_linear=True).estimated()
    n = problem.num_rows
    clusters = None if num_clusters is None else torch.arange(n) % num_clusters
    step = UnpenalisedStep.of(problem.sample, augmented, estimated, clusters)
    assert step is not None
    penalty = problem.penalty(1.0, kind, n, has_linear=True)

    monkeypatch.setattr(module, "NUM_DRAWS", 20_000)
    monkeypatch.setattr(module, "_moved", lambda _, change, excess: change)
    i, j = upper_triangle(SIZE, augmented.device)
    changes = torch.stack([change[i, j] for change in parameter_draws(step, penalty, generator)])

    is_free = augmented[i, j] != 0
    assert (changes[:, ~is_free] == 0).all()
    curvature = penalty.curvature(augmented[:-1, :-1]).matrix()
    information = problem.sample.information(augmented) / n
    spread = information
    if clusters is not None:
        scores = problem.sample.scores(augmented, torch.ones(n, dtype=torch.bool))
        sums = torch.zeros(25, scores.shape[1], dtype=torch.float64)
        sums.index_add_(0, clusters, scores - scores.mean(dim=0))
        spread = 25 / 24 * (n - 1) / n * sums.mT @ sums / n
    inverse = (information + curvature)[is_free][:, is_free].inverse()
    covariance = inverse @ (spread + curvature)[is_free][:, is_free] @ inverse / n
    whitened = torch.linalg.cholesky(covariance).inverse() @ changes[:, is_free].mT
    found = torch.cov(whitened)
    # Five standard errors of a variance from so many draws.
    torch.testing.assert_close(found, torch.eye(len(found)).double(), rtol=0, atol=5 * 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [GaussianVNCE, TruncatedGaussianVNCE])
def test_of_a_long_complete_table_they_vary_like_maximum_likelihood(
    estimator: type[GaussianVNCE] | type[TruncatedGaussianVNCE],
) -> None:
    """Far from zero both models are the Gaussian: (1 - rho²) / √n of a partial correlation.

    Noise of 50 rows a data row leaves J within a few per cent of the information of a row.
    """
    num_rows, num_columns = 2_000, 4
    columns = np.arange(num_columns)
    covariance = 0.5 ** np.abs(np.subtract.outer(columns, columns))
    rng = np.random.default_rng(4)
    X = rng.multivariate_normal(np.full(num_columns, 8.0), covariance, num_rows)
    fitted = estimator(penalty=0.03, penalty_kind="ridge", noise_ratio=50).fit(X)
    K = np.stack([model.precision.numpy() for model in fitted._result.model_draws])
    means = np.stack([model.mean().numpy() for model in fitted._result.model_draws])
    scale = np.sqrt(np.diagonal(K, axis1=1, axis2=2))
    rho = (-K / (scale[:, :, None] * scale[:, None, :]))[:, *np.triu_indices(num_columns, 1)]
    spreads = rho.std(axis=0, ddof=1) / ((1 - rho.mean(axis=0) ** 2) / math.sqrt(num_rows))
    errors = means.std(axis=0, ddof=1) / (X.std(axis=0) / math.sqrt(num_rows))
    # Ten standard deviations, each of 100 draws and so known to a fourteenth of itself.
    assert 0.9 < np.mean([*spreads, *errors]) < 1.1
    # Five standard errors of the mean of 100 draws.
    away = np.abs(means.mean(axis=0) - X.mean(axis=0)) * math.sqrt(num_rows) / X.std(axis=0)
    assert away.max() < 0.5


def test_a_graph_that_was_chosen_and_a_linear_term_at_zero_stay_as_they_are() -> None:
    rng = np.random.default_rng(5)
    X = np.abs(rng.normal(size=(200, 4)))
    fitted = TruncatedGaussianVNCE(
        penalty_kind="l1", selection="ebic", penalties=[10.0, 0.3], linear="zero"
    ).fit(X)
    assert (fitted.precision_ == 0).any()
    assert len(fitted._result.model_draws) == 100
    for model in fitted._result.model_draws:
        assert (model.linear == 0).all()
