"""Scores and information of the likelihood, by rows drawn from the model."""

import numpy as np
import pytest
import torch
from torch import Tensor

from vnce_engine.contrastive import likelihood_rows
from vnce_engine.contrastive.likelihood_rows import LikelihoodRows
from vnce_engine.contrastive.truncated_problem import Problem
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.information import statistics, to_matrix, upper_triangle
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.runtime.progress import Progress
from vnce_engine.simulate import mask_completely_at_random, sample_truncated_gaussian

NUM_COLUMNS = 3
SIZE = NUM_COLUMNS + 1
PRECISION = np.array([[2.0, 0.7, 0.0], [0.7, 1.5, -0.6], [0.0, -0.6, 1.2]])


def rows_of(num_rows: int, linear: list[float], fraction: float) -> tuple[LikelihoodRows, Tensor]:
    """Return rows of the model of PRECISION and h, in units of their own, and A in those units."""
    rng = np.random.default_rng(7)
    X = sample_truncated_gaussian(PRECISION, num_rows, rng, linear=linear)
    if fraction:
        X = mask_completely_at_random(X, fraction, rng)
    generator = torch.Generator().manual_seed(0)
    problem = Problem.prepare(Observations.from_array(X), 3, "sobol", generator)
    model = QuadraticModel(
        torch.from_numpy(PRECISION), torch.tensor(linear, dtype=torch.float64), torch.zeros(())
    )
    augmented = model.with_columns_scaled(1 / problem.scale).augmented()
    rows = problem.scored_rows(problem.sample, Progress(None))
    rows.redraw(augmented)
    return rows, augmented


@pytest.mark.parametrize("fraction", [0.0, 0.4])
def test_scores_have_mean_zero_at_the_truth_and_the_information_for_their_spread(
    fraction: float,
) -> None:
    """With four draws of each missing cell, which leave E[t | u] uncertain.

    The variance of 20,000 squares has a relative standard error of about .03, as each has 14 times
    that of a normal one's, and draws add up to a quarter of what is missing, here at most two
    thirds of a product's. The mean of ten times as many drawn rows adds a tenth to the variance of
    the scores' mean.
    """
    rows, augmented = rows_of(20_000, [0.3, -0.2, 0.5], fraction)
    scores = rows.scores(augmented, torch.ones(rows.num_rows, dtype=torch.bool))[:, :-1]
    errors = scores.std(dim=0) * ((1 + rows.chance) / rows.num_rows) ** 0.5
    assert (scores.mean(dim=0).abs() < 4 * errors).all()
    information = rows.information(augmented)[:-1, :-1] / rows.num_rows
    ratio = scores.var(dim=0) / information.diagonal()
    assert (ratio > 1 - 4 * 0.04).all()
    assert (ratio < 1 + 4 * 0.04 + (0.5 if fraction else 0.0)).all()


@pytest.mark.parametrize("num_rows", [500, 3_000])
def test_the_information_far_from_zero_is_the_gaussian_s(
    num_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of normal rows' observed cells, ½ tr(S⁻¹ S' S⁻¹ S') + m'ᵀ S⁻¹ m', by derivatives.

    In units of which it is the identity each entry has a standard error of about .03: a square's
    variance about its mean is 15 times that of a normal one, of 20,000 rows. Of 3,000 data rows
    60,000 are drawn, of which those 20,000 are as often incomplete as all.
    """
    monkeypatch.setattr(likelihood_rows, "_PART", 30_000)
    mean = [12.0, 14.0, 13.0]
    linear = (PRECISION @ np.array(mean)).tolist()
    rows, augmented = rows_of(num_rows, linear, 0.3)
    theta = augmented[upper_triangle(SIZE, augmented.device)]
    expected = torch.zeros(len(theta), len(theta), dtype=torch.float64)
    patterns, counts = torch.unique(rows._observations.observed, dim=0, return_counts=True)
    for pattern, count in zip(patterns, counts, strict=True):
        expected += count / rows.num_rows * gaussian_information(theta, pattern)
    expected = expected[:-1, :-1]
    found = rows.information(augmented)[:-1, :-1] / rows.num_rows
    inverse = torch.linalg.inv(torch.linalg.cholesky(expected))
    identity = torch.eye(len(expected), dtype=torch.float64)
    assert (inverse @ found @ inverse.mT - identity).abs().max() < 5 * 0.03


def gaussian_information(theta: Tensor, is_observed: Tensor) -> Tensor:
    """Return the expected information (p, p) about theta in one normal row's observed cells."""
    index = is_observed.nonzero().flatten()

    def moments(at: Tensor) -> tuple[Tensor, Tensor]:
        augmented = to_matrix(at, SIZE)
        covariance = torch.linalg.inv(augmented[:-1, :-1])
        mean = -covariance @ augmented[:-1, -1]
        return mean[index], covariance[index][:, index]

    mean_slope, covariance_slope = torch.autograd.functional.jacobian(moments, theta)
    inverse = torch.linalg.inv(moments(theta)[1])
    spread = torch.einsum("ab,bcp,cd,daq->pq", inverse, covariance_slope, inverse, covariance_slope)
    return 0.5 * spread + mean_slope.mT @ inverse @ mean_slope


def test_scores_of_some_rows_are_theirs_among_all() -> None:
    rows, augmented = rows_of(60, [0.3, -0.2, 0.5], 0.3)
    scores = rows.scores(augmented, torch.ones(60, dtype=torch.bool))
    some = torch.arange(60) % 3 == 1
    torch.testing.assert_close(rows.scores(augmented, some), scores[some])


def test_complete_rows_have_their_own_statistics() -> None:
    rows, augmented = rows_of(50, [0.3, -0.2, 0.5], 0.0)
    values = rows._observations.values
    own = statistics(torch.cat([values, torch.ones(50, 1, dtype=torch.float64)], dim=1).mT).mT
    scores = rows.scores(augmented, torch.ones(50, dtype=torch.bool))
    torch.testing.assert_close(scores - scores.mean(dim=0), own - own.mean(dim=0))


def test_rows_beyond_those_of_the_covariance_count_for_the_mean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both ways of adding up draws of missing cells give one mean of the same rows."""
    monkeypatch.setattr(likelihood_rows, "_PART", 5_000)
    by_sums, augmented = rows_of(1_250, [0.3, -0.2, 0.5], 0.3)
    monkeypatch.setattr(likelihood_rows, "_LEAST_ROWS", 20 * by_sums.num_rows)
    by_rows, _ = rows_of(1_250, [0.3, -0.2, 0.5], 0.3)
    everyone = torch.ones(by_sums.num_rows, dtype=torch.bool)
    torch.testing.assert_close(
        by_sums.scores(augmented, everyone), by_rows.scores(augmented, everyone)
    )
    assert by_sums.chance == by_rows.chance == 1 / 20


def test_progress_is_told_while_rows_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every 250 rows, as chains of columns that nearly depend on each other take seconds."""
    rows, augmented = rows_of(60, [0.3, -0.2, 0.5], 0.3)
    spent: list[int] = []
    monkeypatch.setattr(rows._progress, "spend", spent.append)
    drawn = rows._next(600, rows._rows_of_model(augmented))
    assert drawn.shape == (600, NUM_COLUMNS)
    assert len(spent) == 3
