"""Long tables: choices by part of the rows, and noise that memory bounds."""

import numpy as np
import pytest
import torch

from vnce_engine import problem as problem_module
from vnce_engine.observations import Observations
from vnce_engine.problem import NUM_FOLDS, Problem

NUM_ROWS, NOISE_RATIO = 120, 10


@pytest.fixture
def problem() -> Problem:
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(NUM_ROWS, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 1.0
    generator = torch.Generator().manual_seed(0)
    return Problem.prepare(Observations.from_array(X), NUM_FOLDS, NOISE_RATIO, "sobol", generator)


def test_a_part_of_the_rows_keeps_units_and_noise(problem: Problem) -> None:
    part = problem.with_at_most(60)
    assert part.num_rows == sum(fold.num_rows for fold in part.folds) == 60
    assert len(part.folds) == NUM_FOLDS
    assert part.folds[0].nu == NOISE_RATIO
    assert part.noise is problem.noise
    assert torch.equal(part.scale, problem.scale)


def test_the_rows_of_a_part_are_different_rows_of_the_table(problem: Problem) -> None:
    part = problem.with_at_most(60)
    chosen = part.observations.values * part.observations.observed
    values = problem.observations.values * problem.observations.observed
    matches = (chosen.unsqueeze(1) == values).all(dim=-1)
    assert (matches.sum(dim=1) == 1).all()
    assert (matches.sum(dim=0) <= 1).all()


def test_few_rows_are_taken_as_they_are(problem: Problem) -> None:
    assert problem.with_at_most(NUM_ROWS) is problem


@pytest.mark.parametrize(("most", "expected"), [(10**6, 30), (2500, 20), (1200, 10), (100, 10)])
def test_further_noise_ends_where_memory_would(
    problem: Problem, monkeypatch: pytest.MonkeyPatch, most: int, expected: int
) -> None:
    monkeypatch.setattr(problem_module, "_MOST_NOISE_ROWS", most)
    assert problem.sample_with_more_noise().nu == expected
