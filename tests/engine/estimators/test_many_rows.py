"""Long tables: choices by part of the rows, and noise that memory bounds."""

import numpy as np
import pytest
import torch

from vnce_engine.contrastive import truncated_problem as problem_module
from vnce_engine.contrastive.truncated_problem import FINAL_NUM_DRAWS, NUM_DRAWS, Problem
from vnce_engine.data.observations import Observations

NUM_ROWS, NOISE_RATIO = 120, 10


@pytest.fixture
def problem() -> Problem:
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(NUM_ROWS, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 1.0
    generator = torch.Generator().manual_seed(0)
    return Problem.prepare(Observations.from_array(X), NOISE_RATIO, "sobol", generator)


def test_a_part_of_the_rows_keeps_units_and_noise(problem: Problem) -> None:
    part = problem.with_at_most(60)
    assert part.num_rows == part.sample.num_rows == 60
    assert part.sample.nu == NOISE_RATIO
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


@pytest.mark.parametrize(
    ("most", "nu", "num_draws"),
    [
        (10**6, 30, FINAL_NUM_DRAWS),
        (20 * NUM_ROWS, 20, FINAL_NUM_DRAWS),
        (NOISE_RATIO * NUM_ROWS, 10, 10),
        (NUM_DRAWS * NUM_ROWS, 10, NUM_DRAWS),
        (NUM_ROWS - 1, 10, NUM_DRAWS),
    ],
)
def test_further_noise_and_draws_end_where_memory_would(
    problem: Problem, monkeypatch: pytest.MonkeyPatch, most: int, nu: int, num_draws: int
) -> None:
    monkeypatch.setattr(problem_module, "_MOST_ROWS", most)
    sample = problem.thickened_sample()
    assert sample.nu == nu
    assert sample.num_draws == num_draws
    assert sorted(sample.data_rows().tolist()) == list(range(NUM_ROWS))
    assert sorted(torch.cat([block.owner for block in sample.noise]).tolist()) == sorted(
        nu * list(range(NUM_ROWS))
    )


def test_complete_rows_have_one_draw_to_the_end() -> None:
    X = np.random.default_rng(0).gamma(2.0, size=(NUM_ROWS, 3))
    generator = torch.Generator().manual_seed(0)
    problem = Problem.prepare(Observations.from_array(X), NOISE_RATIO, "sobol", generator)
    assert problem.sample.num_draws == problem.thickened_sample().num_draws == 1
