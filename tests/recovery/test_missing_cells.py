"""With many rows and many cells missing, interactions come back at their full size."""

import math

import numpy as np
import pytest

from vnce_engine import TruncatedGaussianVNCE
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)

# Of eight tables a mean passes four of their standard errors once in 200 times, of sixteen once in
# 900.
NUM_COLUMNS, NUM_TABLES = 6, 16
# What independent factors for a row's missing cells left of edges where h = 0, whatever n.
FLATTENED = {0.3: 0.90, 0.5: 0.67}


def recovered_share(seed: int, num_rows: int, fraction: float, linear: str) -> float:
    """Return the mean over a ring's edges of the estimate over the true value."""
    rng = np.random.default_rng(seed)
    precision = ring_precision(NUM_COLUMNS, rng)
    h = np.zeros(NUM_COLUMNS)
    if linear == "free":
        signs = np.triu(rng.choice([-1.0, 1.0], size=precision.shape), k=1)
        precision *= signs + signs.T + np.eye(NUM_COLUMNS)
        h = rng.uniform(0.5, 1.5, size=NUM_COLUMNS)
    X = sample_truncated_gaussian(precision, num_rows, rng, linear=h)
    X = mask_completely_at_random(X, fraction, rng)
    model = TruncatedGaussianVNCE(linear=linear, penalty=None, random_state=seed).fit(X)
    assert model.converged_
    edges = np.triu(precision != 0, k=1)
    return float((model.precision_[edges] / precision[edges]).mean())


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("num_rows", "fraction", "linear"),
    [
        pytest.param(1_500, 0.5, "zero", marks=pytest.mark.slow),
        pytest.param(10_000, 0.3, "zero", marks=pytest.mark.release),
        pytest.param(10_000, 0.5, "free", marks=pytest.mark.release),
    ],
)
def test_interactions_are_not_flattened_where_many_cells_are_missing(
    num_rows: int, fraction: float, linear: str
) -> None:
    """The mean over tables is within 4 of its standard errors, taken over the tables, of 1."""
    seeds = range(NUM_TABLES)
    shares = np.array([recovered_share(seed, num_rows, fraction, linear) for seed in seeds])
    standard_error = shares.std(ddof=1) / math.sqrt(NUM_TABLES)
    assert abs(shares.mean() - 1) < 4 * standard_error
    # Small enough to tell what is flattened from what is not.
    assert 4 * standard_error < 1 - FLATTENED[fraction]
