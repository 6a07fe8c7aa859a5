"""The E-step: its fixed point, its bound, and the variance that it takes away."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.nn.functional import logsigmoid

from vnce_engine import truncated_normal
from vnce_engine.blocks import Block
from vnce_engine.mean_field import complete, log_ratios, sweep
from vnce_engine.noise import ProductTruncatedNormal
from vnce_engine.observations import Observations
from vnce_engine.sample import ContrastiveSample, data_blocks, noise_blocks, noise_points

NUM_ROWS = 30


def some_observations() -> Observations:
    rng = np.random.default_rng(4)
    X = np.abs(rng.normal(1.0, 0.7, size=(NUM_ROWS, 4)))
    X[rng.random(X.shape) < 0.5] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 1.0
    return Observations.from_array(X)


def some_augmented() -> torch.Tensor:
    """Return A of a positive definite K, h and c, d = 4."""
    augmented = 2.0 * torch.eye(5, dtype=torch.float64)
    for i, j, value in ((0, 1, 0.7), (1, 2, -0.5), (0, 3, 0.4), (2, 3, 0.6), (1, 4, -0.8)):
        augmented[i, j] = augmented[j, i] = value
    return augmented


def block_of(observations: Observations, seed: int = 0, num_draws: int = 3) -> Block:
    noise = ProductTruncatedNormal.fit(observations)
    generator = torch.Generator().manual_seed(seed)
    rows = torch.arange(observations.num_rows)
    (block,) = data_blocks(observations, rows, noise, num_draws, generator)
    return block


def lower_bound(block: Block, augmented: torch.Tensor, mu: torch.Tensor) -> torch.Tensor:
    """Return E_q[log phi - log q], summed over rows, for factors with the given mu."""
    sigma = augmented.diagonal()[block.coordinate].rsqrt()
    mean, variance = truncated_normal.moments(mu, sigma)
    rows = block.draws[:, 0].clone()
    rows[block.coordinate, block.column] = mean
    expected_phi = -0.5 * ((augmented @ rows) * rows).sum()
    expected_phi = expected_phi - 0.5 * (augmented.diagonal()[block.coordinate] * variance).sum()
    second_moment = variance + (mean - mu).square()
    negative_log_q = 0.5 * torch.log(2 * math.pi * sigma.square())
    negative_log_q = negative_log_q + truncated_normal.log_mass(mu, sigma)
    negative_log_q = negative_log_q + 0.5 * second_moment / sigma.square()
    return expected_phi + negative_log_q.sum()


def test_sweeps_never_lower_the_evidence_bound() -> None:
    block, augmented = block_of(some_observations()), some_augmented()
    values = [float(lower_bound(block, augmented, sweep(block, augmented, 1).mu)) for _ in range(6)]
    assert all(later >= earlier - 1e-10 for earlier, later in pairwise(values))
    assert values[-1] > values[0] + 1e-3


def test_means_settle_where_each_factor_is_the_best_given_the_others() -> None:
    block, augmented = block_of(some_observations()), some_augmented()
    factors = sweep(block, augmented, 200)
    mean, mu = factors.rows, factors.mu
    for cell in range(len(mu)):
        i, row = int(block.coordinate[cell]), int(block.column[cell])
        others = augmented[i] @ mean[:, row] - augmented[i, i] * mean[i, row]
        sigma = augmented[i, i].rsqrt()
        expected = -others / augmented[i, i]
        assert float(mu[cell]) == pytest.approx(float(expected), rel=1e-9, abs=1e-9)
        exact_mean = truncated_normal.moments(expected, sigma)[0]
        assert float(block.cell_mean[cell]) == pytest.approx(float(exact_mean), rel=1e-9)


def test_a_sweep_sets_columns_that_hardly_act_on_each_other_at_once() -> None:
    rng = np.random.default_rng(6)
    num_columns, at_once = 60, 24
    X = np.abs(rng.normal(1.0, 0.7, size=(8, num_columns)))
    X[rng.random(X.shape) < 0.5] = np.nan
    X[:2] = np.abs(rng.normal(1.0, 0.7, size=(2, num_columns)))
    block = block_of(Observations.from_array(X))
    noise = torch.from_numpy(rng.normal(0, 0.02, size=(num_columns + 1, num_columns + 1)))
    augmented = noise + noise.mT + 2 * torch.eye(num_columns + 1, dtype=torch.float64)
    rows = block.expected_rows(block.cells())
    for start in range(0, num_columns, at_once):
        before = rows.clone()
        for i in range(start, min(start + at_once, num_columns)):
            missing = block.column[block.coordinate == i]
            mu = -(augmented[i] @ before - augmented[i, i] * before[i]) / augmented[i, i]
            rows[i, missing] = truncated_normal.moments(mu, augmented[i, i].rsqrt())[0][missing]
    assert torch.allclose(sweep(block, augmented, 1).rows, rows, rtol=1e-9, atol=0)


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_sweeps_of_columns_that_all_repel_each_other_never_lower_the_bound(share: float) -> None:
    num_columns = 12  # at once, they would all rise and fall together for ever
    X = np.full((4, num_columns), np.nan)
    X[0], X[1], X[2:, 0] = 0.5, 2.0, 1.0
    block = block_of(Observations.from_array(X))
    augmented = torch.eye(num_columns + 1, dtype=torch.float64)
    augmented[:-1, :-1] += share * (1 - torch.eye(num_columns, dtype=torch.float64))
    augmented[:-1, -1] = augmented[-1, :-1] = -3.0
    values = [
        float(lower_bound(block, augmented, sweep(block, augmented, 1).mu)) for _ in range(30)
    ]
    assert all(later >= earlier - 1e-10 for earlier, later in pairwise(values))


def test_a_factor_far_in_the_tail_has_its_mean_mass_and_draws() -> None:
    block, augmented = block_of(some_observations()), some_augmented()
    augmented[0, 1] = augmented[1, 0] = 300.0  # columns that all but exclude each other
    completion = complete(block, augmented, 0.0, 3)
    factors = sweep(block, augmented, 1)
    assert factors.alpha.max() > 100
    mean = truncated_normal.moments(factors.mu, factors.sigma)[0]
    # Three levels of the continued fraction are right to 1e-8.
    assert torch.allclose(factors.mean, mean, rtol=1e-7, atol=0)
    assert torch.isfinite(block.log_ratio_offset).all()
    assert torch.isfinite(completion.control).all()


def test_means_that_drive_each_other_up_for_ever_stop_at_twice_the_largest_observed_value() -> None:
    observations, augmented = some_observations(), some_augmented()
    augmented[0, 1] = augmented[1, 0] = -10.0  # K is indefinite: both want to be infinite together
    factors = sweep(block_of(observations), augmented, 100)
    highest = 2 * observations.values.max(dim=0).values[factors.place.coordinate]
    rounding = 1 + 1e-12
    assert (factors.mu <= rounding * highest).all()
    assert (factors.mu > highest / rounding).any()


def test_one_missing_cell_has_its_exact_posterior_after_one_sweep() -> None:
    values = torch.tensor([[0.8, 0.0, 0.3, 1.1]] * 8, dtype=torch.float64)
    observed = torch.tensor([True, False, True, True]).repeat(8, 1)
    full = Observations(values + 0.1 * torch.arange(8).unsqueeze(1), torch.ones(8, 4).bool())
    noise = ProductTruncatedNormal.fit(full)
    generator = torch.Generator().manual_seed(0)
    observations = Observations(values, observed)
    (block,) = data_blocks(observations, torch.arange(8), noise, 3, generator)
    # An unfitted column's ceiling would be 0: nothing of it is observed here.
    block.ceiling = torch.full((4,), 100.0, dtype=torch.float64)
    augmented = some_augmented()

    complete(block, augmented, 0.0, 1)

    # log phi - log q is then the log integral of phi over the cell, the same for every draw.
    spread = log_ratios(block, augmented).std(dim=0)
    assert spread.max() < 1e-12


def test_control_variates_have_mean_zero() -> None:
    observations, augmented = some_observations(), some_augmented()
    controls = []
    for seed in range(400):
        block = block_of(observations, seed)
        controls.append(complete(block, augmented, math.log(10.0), 20).control)
    stacked = torch.stack(controls)
    mean = stacked.mean(dim=0)
    standard_error = stacked.std(dim=0) / math.sqrt(len(controls))
    # 15 different entries: 5 standard errors are passed by chance once in 100,000 runs.
    assert (mean.abs() <= 5 * standard_error + 1e-12).all()


def test_a_held_out_objective_varies_less_with_its_draws_than_its_terms_do() -> None:
    observations, augmented = some_observations(), some_augmented()
    log_nu, own, controlled = math.log(1.0), [], []
    for seed in range(60):
        block = block_of(observations, seed)
        sample = ContrastiveSample((block,), (_noise_of(observations),))
        controlled.append(float(sample.held_out_objective(augmented, NUM_ROWS).sum()))
        terms = logsigmoid(log_ratios(block, augmented) - log_nu).mean(dim=0)
        own.append(float(terms.sum()))
    # The noise block is the same every time. Of 60 variances each, the logarithm of the ratio has
    # the standard error √(4 / 59) = .26: three of them are less than the factor of 2.5 asked for.
    assert np.var(controlled) < 0.4 * np.var(own)


def _noise_of(observations: Observations) -> Block:
    """Return noise rows, one a data row and the same at every call."""
    noise = ProductTruncatedNormal.fit(observations)
    points = noise_points(4, "sobol", torch.Generator().manual_seed(9), torch.device("cpu"))
    (block,) = noise_blocks(observations, torch.arange(NUM_ROWS), noise, points)
    return block


def test_complete_rows_need_no_control() -> None:
    observations = Observations.from_array(np.abs(np.random.default_rng(0).normal(size=(9, 4))))
    block = block_of(observations)
    assert block.num_draws == 1
    assert (complete(block, some_augmented(), 0.0, 1).control == 0).all()
