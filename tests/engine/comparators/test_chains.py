"""Moments of the model from Gibbs chains."""

import numpy as np
import pytest
import torch

from vnce_engine.comparators.chains import CompletedTable, ModelChains
from vnce_engine.comparators.exponential import Moments, Parameters
from vnce_engine.distributions.gibbs import standard_draws
from vnce_engine.distributions.truncated_normal import fast_mean

NUM_CHAINS = 4_000


def test_expected_moments_of_independent_columns_are_exact_but_for_products() -> None:
    precision = np.diag([0.5, 2.0])
    chains = ModelChains(np.zeros((2, 5)), np.random.default_rng(1))
    parameters = Parameters(precision, np.zeros(2))
    chains.sweep(parameters)
    moments = chains.expected_moments(parameters)
    # A half-normal's mean is sigma sqrt(2 / pi), its mean square sigma².
    means = np.sqrt(2 / np.pi / np.diagonal(precision))
    assert moments.first == pytest.approx(means, rel=1e-14)
    assert np.diagonal(moments.second) == pytest.approx([2.0, 0.5], rel=1e-14)
    others = chains.state.mean(axis=1)
    product = 0.5 * (means[0] * others[1] + means[1] * others[0])
    assert moments.second[0, 1] == moments.second[1, 0] == pytest.approx(product, rel=1e-14)


@pytest.mark.slow
def test_expected_moments_have_the_mean_of_the_moments_and_a_fraction_of_their_variance() -> None:
    parameters = Parameters(np.array([[1.0, 0.4], [0.4, 1.5]]), np.array([0.3, -0.2]))
    plain, expected = [], []
    for seed in range(60):
        chains = ModelChains(np.zeros((2, NUM_CHAINS)), np.random.default_rng(seed))
        chains.sweep(parameters, 30)
        plain.append(_vector(chains.moments()))
        expected.append(_vector(chains.expected_moments(parameters)))
    a, b = np.array(plain), np.array(expected)
    standard_error = (a - b).std(axis=0, ddof=1) / np.sqrt(len(a))
    assert (np.abs((a - b).mean(axis=0)) < 4 * standard_error).all()
    # Of 60 variances each, the ratio's relative standard error is 2 / sqrt(59): half of it is three
    # of those above the third or less that it is here.
    assert (b.var(axis=0) < 0.5 * a.var(axis=0)).all()


def test_draws_have_the_mean_of_the_truncated_normal() -> None:
    rng = np.random.default_rng(3)
    for mu, sigma in ((1.5, 0.7), (-2.0, 1.0), (-60.0, 1.0)):
        draws = sigma * standard_draws(np.full(NUM_CHAINS, mu / sigma), rng.random(NUM_CHAINS))
        standard_error = draws.std(ddof=1) / np.sqrt(NUM_CHAINS)
        mean = float(fast_mean(torch.tensor(mu).double(), torch.tensor(sigma).double()))
        assert abs(draws.mean() - mean) < 4 * standard_error


def _vector(moments: Moments) -> np.ndarray:
    return np.array([*moments.first, *moments.second[np.triu_indices(2)]])


@pytest.mark.parametrize("centre", [0.0, 0.7, 3.0])
def test_moments_about_a_centre_are_those_about_zero_moved(centre: float) -> None:
    rng = np.random.default_rng(2)
    K, h = np.array([[1.5, 0.6], [0.6, 1.2]]), np.array([0.3, 2.0])
    chains = ModelChains(np.abs(rng.normal(size=(2, 50))), rng)
    at = np.array([[centre], [-0.5 * centre]])
    for moments in (
        lambda m: chains.expected_moments(Parameters(K, h), m),
        lambda m: CompletedTable(chains.state.T, rng).moments(m),
    ):
        plain, moved = moments(0.0), moments(at)
        m, first, mean = at[:, 0], plain.first, chains.state.mean(axis=1)
        np.testing.assert_allclose(moved.first, first - m, rtol=1e-12)
        # Products are of a coordinate averaged out and another's states, both ways.
        shift = np.outer(m, m) - np.outer(0.5 * (first + mean), m)
        expected = plain.second + shift + shift.T - np.outer(m, m)
        np.fill_diagonal(expected, np.diag(plain.second) - 2 * m * first + m**2)
        np.testing.assert_allclose(moved.second, expected, rtol=1e-12, atol=1e-13)
        assert (moved.second == moved.second.T).all()
