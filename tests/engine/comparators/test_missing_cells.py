"""Missing cells as chains: how far they go, and that each sampler redraws those of its batch."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from vnce_engine.comparators.chains import CompletedTable
from vnce_engine.comparators.exponential import Parameters
from vnce_engine.comparators.result import ScaledTable
from vnce_engine.comparators.stochastic import (
    ChainsFromData,
    FreshChains,
    PersistentChains,
)
from vnce_engine.penalties.penalty import Penalty, PenaltyKind


def table_with_holes() -> ScaledTable:
    rng = np.random.default_rng(3)
    X = np.abs(rng.normal(size=(150, 3)))
    X[rng.random(X.shape) < 0.3] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 1.0
    none = Penalty(0.0, PenaltyKind.RIDGE, torch.ones(3, dtype=torch.float64), len(X))
    return ScaledTable(X, False, none, rng)


def test_a_cell_goes_no_higher_than_twice_its_columns_largest_observed_value() -> None:
    table = table_with_holes()
    chains = CompletedTable(table.X, table.rng)
    # The first two columns drive each other up: without a ceiling their cells would never stop.
    K = np.array([[1.0, -3.0, 0.0], [-3.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    chains.sweep(Parameters(K, np.zeros(3)), 50)
    highest = 2 * np.nanmax(table.X, axis=0)
    assert (chains.state <= highest[:, np.newaxis]).all()
    assert (chains.state == highest[:, np.newaxis])[:2].any(axis=1).all()


@pytest.mark.parametrize("make", [ChainsFromData, PersistentChains])
def test_contrastive_divergence_redraws_the_missing_cells_of_its_batch_and_no_others(
    make: Callable[[ScaledTable, int], ChainsFromData | PersistentChains],
) -> None:
    table = table_with_holes()
    sampler = make(table, 1)
    before = sampler._table.state.copy()
    rows = np.arange(0, 150, 2)
    sampler.sample(rows, Parameters(np.eye(3), np.zeros(3)))
    is_missing = np.isnan(table.X.T)
    of_batch = np.zeros_like(is_missing)
    of_batch[:, rows] = is_missing[:, rows]
    # A redrawn cell is another number with probability one.
    np.testing.assert_array_equal(sampler._table.state != before, of_batch)


def test_monte_carlo_likelihood_draws_missing_cells_under_the_present_estimate() -> None:
    table = table_with_holes()
    sampler = FreshChains(table, num_draws=2, burn_in=3, thinning=1)
    # Half-normals of mean square 1e-8: next to the observed cells' squares the drawn ones are 0.
    narrow = Parameters(1e8 * np.eye(3), np.zeros(3))
    data, _ = sampler.sample(np.arange(150), narrow)
    observed = np.nansum(table.X**2, axis=0) / 150
    # No half-normal of 135 goes beyond ten standard deviations in a billion years of runs.
    np.testing.assert_allclose(np.diagonal(data.second), observed, rtol=0, atol=100 * 1e-8)


def test_monte_carlo_likelihood_averages_the_model_over_all_its_draws() -> None:
    table = table_with_holes()
    theta = Parameters(np.eye(3), np.zeros(3))
    variances = []
    for num_draws in (1, 5):
        sampler = FreshChains(table, num_draws=num_draws, burn_in=2, thinning=1)
        means = [sampler.sample(np.arange(20), theta)[1].first for _ in range(60)]
        variances.append(np.var(means, axis=0).sum())
    # Columns are independent, and so are sweeps: a fifth. Of 180 values each, the logarithm of the
    # ratio has the standard error √(4 / 180) = .15: three of them are a factor of 1.56.
    assert variances[1] < variances[0] / 5 * 1.56
