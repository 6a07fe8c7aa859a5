"""Simulated tables of known K, of every kind of graph that the estimates are judged on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnce_engine.simulate import (
    hub_precision,
    mask_completely_at_random,
    random_precision,
    ring_precision,
    sample_truncated_gaussian,
    star_precision,
)

FloatArray = NDArray[np.float64]

# Columns of a far table stand so many standard deviations or more above zero: it is Gaussian.
_FAR = 8.0
_INDEPENDENT_COLUMNS = 5


@dataclass(frozen=True)
class Truth:
    """A network and how its rows are drawn."""

    precision: FloatArray
    """K (d, d)."""
    linear: FloatArray | None = None
    """h (d,); None for zero."""
    is_far: bool = False
    """Whether rows are Gaussian of mean 8; they are of the truncated network otherwise."""

    def sample(self, num_rows: int, fraction: float, rng: np.random.Generator) -> FloatArray:
        """Return X (num_rows, d), a `fraction` of its cells NaN."""
        if self.is_far:
            normal = rng.standard_normal((num_rows, len(self.precision)))
            factor = np.linalg.cholesky(np.linalg.inv(self.precision))
            X = np.abs(_FAR + normal @ factor.T)
        else:
            X = sample_truncated_gaussian(self.precision, num_rows, rng, linear=self.linear)
        return mask_completely_at_random(X, fraction, rng) if fraction else X

    @property
    def is_edge(self) -> NDArray[np.bool_]:
        """Which pairs, in the order of `pairs`, have an interaction."""
        return np.abs(pairs(self.precision)) > 1e-9


def pairs(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return the entries above the diagonal, (d (d - 1) / 2,)."""
    above: NDArray[Any] = matrix[np.triu_indices(len(matrix), k=1)]
    return above


def random_signs(
    d: int, rng: np.random.Generator, *, free_linear: bool, density: float = 0.5
) -> Truth:
    """Return random K of both signs, diagonally dominant, and random h or none."""
    precision = random_precision(d, rng, density)
    linear = rng.uniform(-0.5, 1.0, d) if free_linear else None
    return Truth(precision, linear)


def ring(d: int, rng: np.random.Generator) -> Truth:
    """Return the paper's ring."""
    return Truth(ring_precision(d, rng))


def hub(d: int, rng: np.random.Generator) -> Truth:
    """Return the paper's graph with hubs."""
    return Truth(hub_precision(d, rng))


def unit_ring(d: int, rng: np.random.Generator, *, is_far: bool) -> Truth:
    """Return a ring of K_ii = 1 and weights .3 to .45."""
    precision = np.eye(d)
    for i, weight in enumerate(rng.uniform(0.3, 0.45, d)):
        precision[i, (i + 1) % d] = precision[(i + 1) % d, i] = weight
    return Truth(precision, is_far=is_far)


def random_graph(d: int, rng: np.random.Generator) -> Truth:
    """Return K of both signs in which a fifth of the pairs interact."""
    return random_signs(d, rng, free_linear=False, density=0.2)


def star(d: int, rng: np.random.Generator) -> Truth:
    """Return a star: column 0 interacts with all others, with either sign."""
    return Truth(star_precision(d, rng))


def chain(correlation: float) -> Truth:
    """Return a, b = a + s e with corr(a, b) as given, c = .8 b + .6 e, and independent columns."""
    noise = np.sqrt(1 / correlation**2 - 1)
    transform = np.array([[1, 0, 0], [1, noise, 0], [0.8, 0.8 * noise, 0.6]])
    precision = np.eye(3 + _INDEPENDENT_COLUMNS)
    inverse = np.linalg.inv(transform)
    precision[:3, :3] = inverse.T @ inverse
    precision[np.abs(precision) < 1e-9] = 0.0
    return Truth(precision, is_far=True)


def equicorrelated(d: int) -> Truth:
    """Return columns that all correlate .5 in the parent Gaussian."""
    return Truth(np.linalg.inv(0.5 * np.eye(d) + 0.5))


def blocks(d: int) -> Truth:
    """Return two independent blocks of columns that correlate .6 in the parent Gaussian."""
    covariance = np.kron(np.eye(2), np.full((d // 2, d // 2), 0.6)) + 0.4 * np.eye(d)
    precision = np.linalg.inv(covariance)
    precision[np.abs(precision) < 1e-9] = 0.0
    return Truth(precision)


def independent(d: int, *, is_far: bool) -> Truth:
    """Return columns that do not depend on each other."""
    return Truth(np.eye(d), is_far=is_far)


# Makers of a truth by the name of its graph.
DEFAULT_GRAPHS: dict[str, Callable[[np.random.Generator], Truth]] = {
    "ring d=20": lambda rng: ring(20, rng),
    "hub d=20": lambda rng: hub(20, rng),
    "random graph d=10": lambda rng: random_graph(10, rng),
    "star d=10": lambda rng: star(10, rng),
    "chain r=.95": lambda _rng: chain(0.95),
    "chain r=.98": lambda _rng: chain(1 / np.sqrt(1.04)),
    "chain r=.99": lambda _rng: chain(0.99),
    "equicorrelated d=10": lambda _rng: equicorrelated(10),
    "blocks d=10": lambda _rng: blocks(10),
}
