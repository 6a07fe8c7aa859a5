"""Over tables, 95 % intervals cover the truth and false discoveries keep to their rate."""

import math

import numpy as np
import pytest

from vnce_engine import TruncatedGaussianVNCE
from vnce_engine.inference.metrics import scaled_interaction
from vnce_engine.simulate import mask_completely_at_random, sample_truncated_gaussian

NUM_COLUMNS, NUM_ROWS, NUM_TABLES = 6, 500, 48


@pytest.mark.slow
@pytest.mark.parametrize(
    ("linear", "fraction", "penalty"),
    [
        ("free", 0.0, 0.3),
        pytest.param("free", 0.3, 0.3, marks=pytest.mark.release),
        pytest.param("zero", 0.3, 0.3, marks=pytest.mark.release),
        pytest.param("free", 0.3, "auto", marks=pytest.mark.release),
    ],
)
def test_intervals_cover_and_edges_found_are_true(
    linear: str, fraction: float, penalty: str | float
) -> None:
    """Random graphs of both signs, the share covered and of false edges within 4 standard errors.

    Those over tables, as the pairs of one table depend on each other.
    """
    covered, false_share = [], []
    for seed in range(NUM_TABLES):
        rng = np.random.default_rng([seed, 16])
        weights = np.triu(rng.uniform(0.2, 0.45, (NUM_COLUMNS, NUM_COLUMNS)), k=1)
        weights *= rng.choice([-1.0, 0.0, 0.0, 1.0], weights.shape)
        precision = weights + weights.T
        precision += np.diag(1.0 + np.abs(precision).sum(axis=1))
        h = rng.uniform(0.5, 1.5, NUM_COLUMNS) if linear == "free" else np.zeros(NUM_COLUMNS)
        X = sample_truncated_gaussian(precision, NUM_ROWS, rng, linear=h)
        X = mask_completely_at_random(X, fraction, rng)
        model = TruncatedGaussianVNCE(linear=linear, penalty=penalty).fit(X)
        truth = scaled_interaction(precision)
        edges = [(truth[edge.source, edge.target], edge) for edge in model.edges_]
        covered.append(np.mean([edge.lower <= rho <= edge.upper for rho, edge in edges]))
        found = [rho for rho, edge in edges if edge.verdict == "present"]
        false_share.append(np.mean([rho == 0 for rho in found]) if found else 0.0)
    error_of_coverage = np.std(covered, ddof=1) / math.sqrt(NUM_TABLES)
    assert abs(np.mean(covered) - 0.95) < 4 * error_of_coverage
    assert 4 * error_of_coverage < 0.05  # small enough to tell
    error_of_share = np.std(false_share, ddof=1) / math.sqrt(NUM_TABLES)
    assert np.mean(false_share) < 0.1 + 4 * error_of_share
