"""Simulated problems: graphs, their precision matrices, and missing cells."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnce_engine.distributions.sampling import sample_truncated_gaussian
from vnce_engine.runtime.checks import check_count, check_fraction

__all__ = [
    "hub_precision",
    "mask_completely_at_random",
    "random_precision",
    "ring_precision",
    "sample_truncated_gaussian",
    "star_precision",
]

FloatArray = NDArray[np.float64]

_WEIGHTS = (0.3, 0.5)
# K of more would not fit into memory.
_MOST_COLUMNS = 100_000
# What the common diagonal adds to the largest row sum: enough for strict diagonal dominance.
_DOMINANCE_MARGIN = 0.01
# And what each own diagonal of a random graph's K adds to its row sum.
_RANDOM_MARGIN = 0.3
# sqrt of the sum of a star's squared partial correlations.
_STAR_STRENGTH = 0.8


def ring_precision(d: int, rng: np.random.Generator) -> FloatArray:
    """Return K (d, d) of a ring: node i is linked to i - 1 and i + 1, the last to the first.

    Off-diagonal entries are +U(0.3, 0.5), as the paper draws them: neighbours repel each other.
    The common diagonal is the largest row sum of the others plus 0.01. d is at least 3.
    Source: Rhodes and Gutmann (2019), Section 5.2, which asks for diagonal dominance only.
    """
    return _with_dominant_diagonal(_ring_weights(d, rng))


def hub_precision(d: int, rng: np.random.Generator) -> FloatArray:
    """Return K (d, d) of a ring with hubs: d/10 random nodes with links to 1/4 of the others.

    A hub is linked to round((d - 1) / 4) random other nodes; a link that exists already keeps
    its weight. Numbers of nodes are rounded, with at least one hub. Otherwise as `ring_precision`.
    """
    weights = _ring_weights(d, rng)
    for hub in rng.choice(d, size=max(1, round(d / 10)), replace=False):
        others = np.delete(np.arange(d), hub)
        for other in rng.choice(others, size=round((d - 1) / 4), replace=False):
            if weights[hub, other] == 0:
                weights[hub, other] = weights[other, hub] = rng.uniform(*_WEIGHTS)
    return _with_dominant_diagonal(weights)


def random_precision(d: int, rng: np.random.Generator, density: float = 0.3) -> FloatArray:
    """Return K (d, d) of a random graph: each pair is linked with probability `density`.

    K_ij of links are U(0.1, 0.5) of either sign; each diagonal entry is its row's sum of the
    others' sizes plus 0.3.
    """
    check_count("d", d, least=2, most=_MOST_COLUMNS)
    weights: FloatArray = np.triu(rng.uniform(0.1, 0.5, (d, d)) * rng.choice([-1, 1], (d, d)), k=1)
    weights *= rng.random((d, d)) < density
    weights += weights.T
    diagonal: FloatArray = np.abs(weights).sum(axis=1) + _RANDOM_MARGIN
    return weights + np.diag(diagonal)


def star_precision(d: int, rng: np.random.Generator) -> FloatArray:
    """Return K (d, d) of a star: node 0 is linked to all others, K_0j = ±0.8 / sqrt(d - 1).

    The diagonal is 1.
    """
    check_count("d", d, least=2, most=_MOST_COLUMNS)
    precision = np.eye(d)
    links = _STAR_STRENGTH / np.sqrt(d - 1) * rng.choice([-1, 1], d - 1)
    precision[0, 1:] = precision[1:, 0] = links
    return precision


def mask_completely_at_random(
    X: ArrayLike, fraction: float, rng: np.random.Generator
) -> FloatArray:
    """Return a copy of X (n, d) with exactly round(fraction n d) cells set to NaN.

    Every set of that many cells is equally likely. `fraction` is in [0, 1).
    """
    check_fraction("fraction", fraction)
    masked = np.array(X, dtype=np.float64)
    cells = rng.choice(masked.size, size=round(fraction * masked.size), replace=False)
    masked.flat[cells] = np.nan
    return masked


def _ring_weights(d: int, rng: np.random.Generator) -> FloatArray:
    check_count("d", d, least=3, most=_MOST_COLUMNS)  # fewer make no ring
    weights = np.diag(rng.uniform(*_WEIGHTS, size=d - 1), k=1)
    weights[0, d - 1] = rng.uniform(*_WEIGHTS)
    return weights + weights.T


def _with_dominant_diagonal(weights: FloatArray) -> FloatArray:
    diagonal: float = weights.sum(axis=1).max() + _DOMINANCE_MARGIN
    return weights + diagonal * np.eye(len(weights))
