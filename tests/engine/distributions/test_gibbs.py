import itertools
import math

import numpy as np
import pytest
import torch

from vnce_engine.distributions import truncated_normal
from vnce_engine.distributions.gibbs import sweep
from vnce_engine.distributions.sampling import sample_truncated_gaussian
from vnce_engine.simulate import ring_precision


def quadrature(precision, linear, upper, statistics):
    """Return expectations of `statistics(x)` by Gauss-Legendre quadrature over [0, upper]^d."""
    d = len(precision)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    nodes, weights = upper * (nodes + 1) / 2, upper * weights / 2
    x = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
    volume = np.stack(np.meshgrid(*[weights] * d, indexing="ij"), axis=-1).reshape(-1, d).prod(1)
    density = np.exp(-0.5 * ((x @ precision) * x).sum(1) + x @ linear) * volume
    return density @ statistics(x) / density.sum()


def first_and_second_moments(x):
    pairs = itertools.combinations_with_replacement(range(x.shape[1]), 2)
    return np.column_stack([x, *[x[:, i] * x[:, j] for i, j in pairs]])


# K, h and an upper limit beyond which less than 1e-10 of the mass lies.
CASES = {
    "two repelling": ([[1.0, 0.6], [0.6, 1.2]], [0.0, 0.0], 9.0),
    "two attracting, shifted": ([[1.0, -0.7], [-0.7, 1.0]], [1.0, -1.0], 12.0),
    "two nearly collinear": ([[1.0, -0.95], [-0.95, 1.0]], [-1.0, 0.3], 25.0),
    "three": ([[1.0, 0.4, -0.3], [0.4, 0.9, 0.2], [-0.3, 0.2, 1.1]], [0.5, 0.0, -0.5], 10.0),
    "two far in the tail": ([[1.0, 0.5], [0.5, 1.0]], [-50.0, -80.0], 1.0),
    "one in the tail pulled by the other": ([[1.0, 8.0], [8.0, 65.0]], [0.0, 0.0], 7.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_draws_have_the_moments_of_the_density(case):
    precision, linear, upper = CASES[case]
    n = 20_000
    # Collinear pairs mix slowly: the Gibbs sampler's lag-one correlation there is .95² = .90, so
    # that rows 60 sweeps apart are correlated by .002 and count as independent.
    x = sample_truncated_gaussian(
        precision, n, np.random.default_rng(3), linear=linear, burn_in=200, thinning=60
    )
    expected = quadrature(np.array(precision), np.array(linear), upper, first_and_second_moments)

    statistics = first_and_second_moments(x)

    standard_error = statistics.std(axis=0) / math.sqrt(n)
    assert (np.abs(statistics.mean(axis=0) - expected) < 5 * standard_error).all()
    assert (x >= 0).all()


def test_the_first_rows_after_the_default_burn_in_have_forgotten_the_start():
    precision = np.array([[1.0, 0.4, -0.3], [0.4, 0.9, 0.2], [-0.3, 0.2, 1.1]])
    rng = np.random.default_rng(4)
    # 250 rows are one a chain: all are taken one sweep after the burn-in.
    x = np.concatenate(
        [sample_truncated_gaussian(precision, 250, rng, thinning=1) for _ in range(40)]
    )
    expected = quadrature(precision, np.zeros(3), 10.0, first_and_second_moments)

    statistics = first_and_second_moments(x)

    standard_error = statistics.std(axis=0) / math.sqrt(len(x))
    assert (np.abs(statistics.mean(axis=0) - expected) < 5 * standard_error).all()


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [-50.0, -3.0, 0.0, 5.0, 29.9, 30.1, 100.0])
def test_independent_coordinates_are_univariate_truncated_normals(alpha):
    n, sigma = 20_000, 2.0
    mu = -alpha * sigma
    precision = np.eye(2) / sigma**2
    x = sample_truncated_gaussian(
        precision, n // 2, np.random.default_rng(6), linear=np.full(2, mu / sigma**2), burn_in=1
    )
    mean, variance = truncated_normal.moments(
        torch.tensor(mu, dtype=torch.float64), torch.tensor(sigma, dtype=torch.float64)
    )

    assert abs(x.mean() - mean.item()) < 5 * math.sqrt(variance.item() / n)
    # The kurtosis is at most 9, an exponential's: a squared deviation varies by 8 variance².
    assert abs(x.var() / variance.item() - 1) < 5 * math.sqrt(8 / n)


def test_a_chain_in_the_far_tail_leaves_the_others_draws_as_they_were():
    precision, linear = np.array([[1.0, 8.0], [8.0, 65.0]]), np.zeros(2)
    near = np.array([[0.3, 0.1, 0.5], [0.1, 0.2, 0.0]])
    far = near.copy()
    # alpha of the first chain's first coordinate is 8 times 50, where the tail's mass is no number.
    far[1, 0] = 50.0
    for state in (near, far):
        sweep(state, precision, linear, np.random.default_rng(0))

    assert far[:, 1:] == pytest.approx(near[:, 1:], rel=1e-12)
    # It is drawn from about an exponential of mean 1 / alpha there.
    assert 0 < far[0, 0] < 40 / 400


def test_many_sweeps_at_once_are_as_many_sweeps():
    precision, linear = np.array([[1.0, 0.4], [0.4, 1.5]]), np.array([0.3, -0.2])
    together, apart = np.zeros((2, 4)), np.zeros((2, 4))
    sweep(together, precision, linear, np.random.default_rng(0), 3)
    rng = np.random.default_rng(0)
    for _ in range(3):
        sweep(apart, precision, linear, rng)

    assert together == pytest.approx(apart, rel=1e-12)


def test_rows_a_thinning_apart_are_uncorrelated_on_a_ring():
    x = sample_truncated_gaussian(
        ring_precision(20, np.random.default_rng(0)), 10_000, np.random.default_rng(1)
    )
    now, later = x[:-250].ravel(), x[250:].ravel()

    # Coordinates correlate within a row, so the number of independent products is at least the
    # number of rows.
    assert abs(np.corrcoef(now, later)[0, 1]) < 5 / math.sqrt(len(x))


@pytest.mark.parametrize("n", [1, 7, 250, 251, 600])
def test_the_number_of_rows_is_the_one_asked_for(n):
    x = sample_truncated_gaussian(np.eye(3), n, np.random.default_rng(0), burn_in=0, thinning=1)

    assert x.shape == (n, 3)
    assert len(np.unique(x)) == 3 * n


def test_the_generator_decides_the_draws():
    draws = [
        sample_truncated_gaussian(np.eye(2), 5, np.random.default_rng(seed)) for seed in (1, 1, 2)
    ]

    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


@pytest.mark.parametrize(
    ("precision", "message"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "positive definite, got a smallest eigenvalue of -1"),
        ([[1.0, 0.5], [0.4, 1.0]], "must be symmetric"),
        ([[1.0, math.nan], [math.nan, 1.0]], "must be finite"),
        ([[1.0, 0.0]], "square matrix"),
    ],
)
def test_a_matrix_that_cannot_be_sampled_from_is_refused(precision, message):
    with pytest.raises(ValueError, match=message):
        sample_truncated_gaussian(precision, 10, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"burn_in": -1}, "`burn_in` must be a whole number from 0 to 1000000, got -1"),
        ({"thinning": 0}, "`thinning` must be a whole number from 1 to 1000000, got 0"),
        ({"linear": [1.0]}, "`linear` must be 2 finite numbers"),
    ],
)
def test_options_out_of_range_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        sample_truncated_gaussian(np.eye(2), 10, np.random.default_rng(0), **options)
