"""The mean-field approximation: its fixed point, its bound and its ceiling."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.integrate import simpson

from vnce_engine.contrastive.noise import ProductTruncatedNormal
from vnce_engine.data.observations import Observations
from vnce_engine.distributions import truncated_normal
from vnce_engine.inference.mean_field import IncompleteRows, ceiling, sweep

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


def rows_of(observations: Observations) -> IncompleteRows:
    column_mean = ProductTruncatedNormal.fit(observations).mean()
    return IncompleteRows.of(
        observations.values, observations.observed, column_mean, ceiling(observations)
    )


def expected_rows(table: IncompleteRows) -> torch.Tensor:
    """Return (d + 1, b): observed values, and the mean under q in the missing cells' place."""
    rows = table.rows.clone()
    rows[table.coordinate, table.column] = table.cell_mean
    return rows


def lower_bound(table: IncompleteRows, augmented: torch.Tensor, mu: torch.Tensor) -> torch.Tensor:
    """Return E_q[log phi - log q], summed over rows, for factors with the given mu."""
    sigma = augmented.diagonal()[table.coordinate].rsqrt()
    mean, variance = truncated_normal.moments(mu, sigma)
    rows = table.rows.clone()
    rows[table.coordinate, table.column] = mean
    expected_phi = -0.5 * ((augmented @ rows) * rows).sum()
    expected_phi = expected_phi - 0.5 * (augmented.diagonal()[table.coordinate] * variance).sum()
    second_moment = variance + (mean - mu).square()
    negative_log_q = 0.5 * torch.log(2 * math.pi * sigma.square())
    negative_log_q = negative_log_q + truncated_normal.log_mass(mu, sigma)
    negative_log_q = negative_log_q + 0.5 * second_moment / sigma.square()
    return expected_phi + negative_log_q.sum()


def test_sweeps_never_lower_the_evidence_bound() -> None:
    table, augmented = rows_of(some_observations()), some_augmented()
    values = [float(lower_bound(table, augmented, sweep(table, augmented, 1).mu)) for _ in range(6)]
    assert all(later >= earlier - 1e-10 for earlier, later in pairwise(values))
    assert values[-1] > values[0] + 1e-3


def test_means_settle_where_each_factor_is_the_best_given_the_others() -> None:
    table, augmented = rows_of(some_observations()), some_augmented()
    mu = sweep(table, augmented, 200).mu
    mean = expected_rows(table)
    for cell in range(len(mu)):
        i, row = int(table.coordinate[cell]), int(table.column[cell])
        others = augmented[i] @ mean[:, row] - augmented[i, i] * mean[i, row]
        sigma = augmented[i, i].rsqrt()
        expected = -others / augmented[i, i]
        assert float(mu[cell]) == pytest.approx(float(expected), rel=1e-9, abs=1e-9)
        exact_mean = truncated_normal.moments(expected, sigma)[0]
        assert float(table.cell_mean[cell]) == pytest.approx(float(exact_mean), rel=1e-9)


def test_a_sweep_sets_columns_that_hardly_act_on_each_other_at_once() -> None:
    rng = np.random.default_rng(6)
    num_columns, at_once = 60, 24
    X = np.abs(rng.normal(1.0, 0.7, size=(8, num_columns)))
    X[rng.random(X.shape) < 0.5] = np.nan
    X[:2] = np.abs(rng.normal(1.0, 0.7, size=(2, num_columns)))
    table = rows_of(Observations.from_array(X))
    noise = torch.from_numpy(rng.normal(0, 0.02, size=(num_columns + 1, num_columns + 1)))
    augmented = noise + noise.mT + 2 * torch.eye(num_columns + 1, dtype=torch.float64)
    rows = expected_rows(table)
    for start in range(0, num_columns, at_once):
        before = rows.clone()
        for i in range(start, min(start + at_once, num_columns)):
            missing = table.column[table.coordinate == i]
            mu = -(augmented[i] @ before - augmented[i, i] * before[i]) / augmented[i, i]
            rows[i, missing] = truncated_normal.moments(mu, augmented[i, i].rsqrt())[0][missing]
    sweep(table, augmented, 1)
    assert torch.allclose(expected_rows(table), rows, rtol=1e-9, atol=0)


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_sweeps_of_columns_that_all_repel_each_other_never_lower_the_bound(share: float) -> None:
    num_columns = 12  # at once, they would all rise and fall together for ever
    X = np.full((4, num_columns), np.nan)
    X[0], X[1], X[2:, 0] = 0.5, 2.0, 1.0
    table = rows_of(Observations.from_array(X))
    augmented = torch.eye(num_columns + 1, dtype=torch.float64)
    augmented[:-1, :-1] += share * (1 - torch.eye(num_columns, dtype=torch.float64))
    augmented[:-1, -1] = augmented[-1, :-1] = -3.0
    values = [
        float(lower_bound(table, augmented, sweep(table, augmented, 1).mu)) for _ in range(30)
    ]
    assert all(later >= earlier - 1e-10 for earlier, later in pairwise(values))


def test_a_factor_far_in_the_tail_has_its_mean() -> None:
    table, augmented = rows_of(some_observations()), some_augmented()
    augmented[0, 1] = augmented[1, 0] = 300.0  # columns that all but exclude each other
    factors = sweep(table, augmented, 3)
    assert (-factors.mu / factors.sigma).max() > 100
    mean = truncated_normal.moments(factors.mu, factors.sigma)[0]
    assert torch.allclose(factors.mean, mean, rtol=1e-12, atol=0)


def test_means_that_drive_each_other_up_for_ever_stop_at_twice_the_largest_observed_value() -> None:
    observations, augmented = some_observations(), some_augmented()
    augmented[0, 1] = augmented[1, 0] = -10.0  # K is indefinite: both want to be infinite together
    table = rows_of(observations)
    mu = sweep(table, augmented, 100).mu
    highest = 2 * observations.values.max(dim=0).values[table.coordinate]
    rounding = 1 + 1e-12
    assert (mu <= rounding * highest).all()
    assert (mu > highest / rounding).any()


def test_without_the_ceiling_they_would_not_stop() -> None:
    table, augmented = rows_of(some_observations()), some_augmented()
    augmented[0, 1] = augmented[1, 0] = -10.0
    table.ceiling = torch.full((4,), torch.inf, dtype=torch.float64)
    # Each sweep multiplies means missing together by (10 / 2)².
    assert sweep(table, augmented, 20).mean.max() > 1e9


def test_one_missing_cell_has_its_exact_mean_after_one_sweep() -> None:
    values = torch.tensor([[0.8, 0.0, 0.3, 1.1]], dtype=torch.float64)
    observed = torch.tensor([[True, False, True, True]])
    # Wherever q starts, and with no ceiling: nothing of the column is observed here.
    column_mean, no_ceiling = torch.full((2, 4), 100.0, dtype=torch.float64)
    table = IncompleteRows.of(values, observed, column_mean, no_ceiling)
    augmented = some_augmented()

    sweep(table, augmented, 1)

    z = np.linspace(0, 12, 20_001)  # the density has fallen by exp(-100) there
    rows = np.stack([np.full_like(z, 0.8), z, *np.full((2, len(z)), [[0.3], [1.1]]), z**0])
    density = np.exp(-0.5 * np.einsum("ib,ij,jb->b", rows, augmented.numpy(), rows))
    # Simpson's rule errs by about h⁴ = 1e-13.
    mean = simpson(z * density, x=z) / simpson(density, x=z)
    assert float(table.cell_mean) == pytest.approx(mean, rel=1e-9)
