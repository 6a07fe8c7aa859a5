"""Columns that nearly depend on each other are sampled as they should, or a warning says not."""

import warnings

import numpy as np
import pytest
from scipy import stats

from vnce_engine.distributions import ill_conditioned
from vnce_engine.distributions.gibbs import sweep
from vnce_engine.distributions.ill_conditioned import SamplingWarning, interval_draws
from vnce_engine.simulate import ring_precision, sample_truncated_gaussian


def exact_pairs(K: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows (n, 2) with h = 0: in z = Lᵀx a length and an independent angle in a cone."""
    L = np.linalg.cholesky(K)
    first, last = (np.arctan2(*edge[::-1]) for edge in L)
    between = (last - first + np.pi) % (2 * np.pi) - np.pi
    angle = first + rng.random(n) * between
    z = np.sqrt(rng.chisquare(2, n)) * np.array([np.cos(angle), np.sin(angle)])
    return np.linalg.solve(L.T, z).T


@pytest.mark.slow
@pytest.mark.parametrize("r", [0.98, 0.999, 0.9999, 1 - 1e-6])
@pytest.mark.parametrize("sign", [-1, 1])
def test_pairs_have_the_moments_of_their_density(r, sign):
    K = np.array([[1.0, sign * r], [sign * r, 1.0]])
    rng = np.random.default_rng(5)
    x = sample_truncated_gaussian(K, 2_000, rng, thinning=30)
    exact = exact_pairs(K, 200_000, rng)
    for of in (lambda rows: rows, np.square, lambda rows: rows[:, :1] - rows[:, 1:]):
        drawn, expected = of(x), of(exact)
        error = expected.std(axis=0) / np.sqrt(len(x))
        assert (np.abs(drawn.mean(axis=0) - expected.mean(axis=0)) < 5 * error).all()


@pytest.mark.slow
@pytest.mark.parametrize(("d", "r"), [(5, 0.999), (10, 0.9999)])
def test_columns_that_are_nearly_equal_are_as_rejection_draws_them(d, r):
    covariance = (1 - r) * np.eye(d) + r
    K = np.linalg.inv(covariance)
    rng = np.random.default_rng(6)
    x = sample_truncated_gaussian(0.5 * (K + K.T), 1_000, rng, thinning=30)
    exact = rng.multivariate_normal(np.zeros(d), covariance, 60_000)
    exact = exact[(exact >= 0).all(axis=1)]
    for of in (lambda rows: rows.mean(axis=1), lambda rows: rows.std(axis=1)):
        drawn, expected = of(x), of(exact)
        assert abs(drawn.mean() - expected.mean()) < 5 * expected.std() / np.sqrt(len(x))


def test_a_mean_far_from_the_bound_is_kept_where_columns_nearly_depend_on_each_other():
    K = np.linalg.inv(0.001 * np.eye(6) + 0.999)
    rng = np.random.default_rng(7)
    x = sample_truncated_gaussian(0.5 * (K + K.T), 1_000, rng, linear=K @ np.full(6, 9.0))
    # Of a standard deviation of 1, and a bound nine of them away.
    assert (np.abs(x.mean(axis=0) - 9.0) < 5 / np.sqrt(1_000)).all()


def test_chains_that_have_not_mixed_are_a_warning_that_names_what_helps(monkeypatch):
    # Plain Gibbs sweeps: 64 of them leave (1 - 1e-3)^64 of the start.
    monkeypatch.setattr(ill_conditioned, "_move", lambda *arguments: None)
    K = np.linalg.inv(0.001 * np.eye(20) + 0.999)
    with pytest.warns(SamplingWarning, match="`burn_in=10`"):
        sample_truncated_gaussian(0.5 * (K + K.T), 250, np.random.default_rng(0), burn_in=1)


@pytest.mark.slow
def test_chains_that_have_mixed_give_no_warning():
    K = np.linalg.inv(0.001 * np.eye(20) + 0.999)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample_truncated_gaussian(0.5 * (K + K.T), 250, np.random.default_rng(0))


@pytest.mark.parametrize("n", [40, 600])
def test_an_ordinary_k_has_the_draws_of_plain_gibbs_sweeps_from_zero(n):
    K = ring_precision(8, np.random.default_rng(2))
    x = sample_truncated_gaussian(K, n, np.random.default_rng(3), burn_in=20, thinning=4)
    rng = np.random.default_rng(3)
    state = np.zeros((8, min(n, 250)))
    sweep(state, K, np.zeros(8), rng, 20)
    expected = []
    for _ in range(-(-n // 250)):
        sweep(state, K, np.zeros(8), rng, 4)
        expected.append(state.T.copy())
    assert (x == np.concatenate(expected)[:n]).all()


@pytest.mark.parametrize(
    ("low", "high"),
    [(-1.0, 2.0), (-np.inf, np.inf), (3.0, np.inf), (40.0, 41.0), (-41.0, -40.0), (-8.0, 0.1)],
)
def test_draws_on_an_interval_have_their_distribution(low, high):
    uniforms = np.random.default_rng(0).random(4_000)
    draws = interval_draws(np.full(4_000, low), np.full(4_000, high), uniforms)
    assert ((draws >= low) & (draws <= high)).all()
    statistic = stats.kstest(draws, stats.truncnorm(low, high).cdf).statistic
    # Of as many uniforms Kolmogorov's statistic exceeds 2.2 / √n once in 10,000.
    assert statistic < 2.2 / np.sqrt(len(draws))
