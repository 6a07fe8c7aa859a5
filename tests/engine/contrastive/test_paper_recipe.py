import math

import numpy as np
import pytest
import torch

from vnce_engine.contrastive.noise import ProductTruncatedNormal
from vnce_engine.contrastive.objective import vnce_objective
from vnce_engine.contrastive.paper_recipe import MAX_ITERATIONS, NOISE_RATIO, NUM_DRAWS, fit_paper
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.inference.metrics import edge_roc
from vnce_engine.runtime.progress import Progress
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)


def simulate(d, n, fraction, seed=100):
    rng = np.random.default_rng(seed)
    precision = ring_precision(d, rng)
    X = mask_completely_at_random(sample_truncated_gaussian(precision, n, rng), fraction, rng)
    return precision, Observations.from_array(X)


def fit(observations, seed=0, **options):
    noise = ProductTruncatedNormal.fit(observations)
    return fit_paper(observations, noise, torch.Generator().manual_seed(seed), **options)


@pytest.fixture(scope="module")
def incomplete():
    return simulate(4, 200, 0.3)[1]


@pytest.mark.release
def test_the_papers_recipe_ranks_the_edges_of_a_ring_at_30_percent_missing():
    precision, observations = simulate(20, 1000, 0.3)
    result = fit(observations)
    truth = precision != 0

    auc = edge_roc(result.model.precision.abs().numpy(), truth).auc

    # Under a random ranking the area has mean 1/2 and variance (1 + n1 + n0) / (12 n1 n0).
    num_edges, num_others = 20, 170
    chance_error = math.sqrt((1 + num_edges + num_others) / (12 * num_edges * num_others))
    assert auc > 0.5 + 5 * chance_error


def test_the_objective_starts_at_chance_where_the_model_starts_at_the_noise():
    observations = simulate(4, 200, 0.0)[1]
    result = fit(observations, has_linear=True, max_iterations=0)

    chance = -math.log(1 + NOISE_RATIO) + NOISE_RATIO * math.log(NOISE_RATIO / (1 + NOISE_RATIO))
    assert result.objective_path == pytest.approx([chance], rel=1e-12)


def test_the_start_without_a_linear_term_is_a_normalised_density():
    observations = simulate(3, 100, 0.2)[1]
    model = fit(observations, max_iterations=0).model

    nodes, weights = np.polynomial.legendre.leggauss(60)
    upper = 10 / model.precision.diagonal().min().sqrt().item()
    grid, weight = torch.from_numpy(upper * (nodes + 1) / 2), torch.from_numpy(upper * weights / 2)
    points = torch.cartesian_prod(grid, grid, grid)
    volume = torch.cartesian_prod(weight, weight, weight).prod(dim=1)

    assert (model.log_phi(points).exp() * volume).sum().item() == pytest.approx(1, rel=1e-10)


def test_a_complete_table_converges_to_a_maximum_of_the_nce_objective():
    observations = simulate(3, 300, 0.0)[1]

    result = fit(observations, max_iterations=400)

    assert result.status == "converged"
    assert result.num_iterations < 400
    assert list(result.objective_path) == sorted(result.objective_path)
    # Five BFGS iterations gained less than 1e-6 in all, and the curvature is of the order of 1.
    assert result.gradient_norm < 1e-2


@pytest.mark.slow
def test_the_model_is_symmetric_with_a_positive_diagonal_and_no_linear_term(incomplete):
    result = fit(incomplete)

    assert isinstance(result.model, QuadraticModel)
    assert torch.equal(result.model.precision, result.model.precision.mT)
    assert (result.model.precision.diagonal() > 0).all()
    assert (result.model.linear == 0).all()
    assert result.num_iterations <= MAX_ITERATIONS
    assert result.objective_path[-1] > result.objective_path[0]


def test_the_last_log_ratios_give_the_last_objective(incomplete):
    result = fit(incomplete, max_iterations=10)

    terms = vnce_objective(result.log_ratio_data, result.log_ratio_noise, NOISE_RATIO)

    assert result.log_ratio_data.shape == (NUM_DRAWS, incomplete.num_rows)
    assert result.log_ratio_noise.shape == (NUM_DRAWS, NOISE_RATIO * incomplete.num_rows)
    assert terms.total.item() == pytest.approx(result.objective_path[-1], rel=1e-12)


def test_a_has_linear_term_is_used(incomplete):
    free, zero = (fit(incomplete, has_linear=choice, max_iterations=20) for choice in (True, False))

    assert (free.model.linear != 0).all()
    assert free.objective_path[0] > zero.objective_path[0]


def test_a_penalty_shrinks_the_interactions(incomplete):
    def ridge(precision):
        return 5 * precision.triu(diagonal=1).square().sum()

    plain, shrunk = (
        fit(incomplete, max_iterations=20),
        fit(incomplete, max_iterations=20, penalty=ridge),
    )

    assert ridge(shrunk.model.precision) < 0.2 * ridge(plain.model.precision)


def test_the_generator_decides_the_result(incomplete):
    first, again, other = (fit(incomplete, seed, max_iterations=10) for seed in (1, 1, 2))

    assert torch.equal(first.model.precision, again.model.precision)
    assert not torch.equal(first.model.precision, other.model.precision)


def test_the_cap_ends_the_fit_as_not_converged(incomplete):
    result = fit(incomplete, max_iterations=7)

    assert (result.status, result.num_iterations) == ("max_iterations", 7)
    assert len(result.objective_path) == 3


@pytest.mark.parametrize("stop_after", [3, 8])
def test_cancelling_in_either_step_keeps_the_last_estimate(incomplete, stop_after):
    seen = []

    def on_step(step):
        seen.append(step.objective)
        return len(seen) == stop_after

    result = fit(incomplete, progress=Progress(on_step))

    assert result.status == "cancelled"
    assert len(seen) == stop_after
    assert all(math.isfinite(objective) for objective in seen)
    assert torch.isfinite(result.model.precision).all()


def test_an_objective_that_is_not_finite_is_reported_as_such(incomplete):
    result = fit(incomplete, penalty=lambda precision: precision.sum() * math.inf)

    assert result.status == "non_finite"
    assert torch.isfinite(result.model.precision).all()


def test_observed_zeros_are_refused():
    values = np.random.default_rng(0).random((20, 3))
    values[3, 2] = 0.0

    with pytest.raises(ValueError, match=r"column 2 .* has 1 that are not"):
        fit(Observations.from_array(values))
