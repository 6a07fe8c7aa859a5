import numpy as np
import pytest

from vnce_engine.simulate import mask_completely_at_random, sample_truncated_gaussian

# Three columns that repel and attract each other.
PRECISION = np.array([[1.5, 0.6, 0.0], [0.6, 1.2, -0.4], [0.0, -0.4, 1.0]])


@pytest.fixture
def true_precision():
    return PRECISION.copy()


@pytest.fixture(scope="package")
def complete_table():
    X = sample_truncated_gaussian(PRECISION, 4_000, np.random.default_rng(5))
    X.flags.writeable = False
    return X


@pytest.fixture(scope="package")
def table_with_holes(complete_table):
    X = mask_completely_at_random(complete_table, 0.2, np.random.default_rng(6))
    X.flags.writeable = False
    return X


@pytest.fixture
def nearly_functional_table():
    """80 rows, half of the cells missing, one column nearly a function of another."""
    rng = np.random.default_rng(20)
    X = np.abs(rng.normal(size=(80, 4)))
    X[:, 1] = 100 * X[:, 0] + 1e-5 * rng.random(80)
    return mask_completely_at_random(X, 0.5, rng)


@pytest.fixture
def moments_by_quadrature():
    """Return a function of K and h (d,), d at most 3: means of x and xxᵀ under the density."""

    def moments(precision, linear, upper=8.0, points=80):
        nodes, weights = np.polynomial.legendre.leggauss(points)
        grid = np.meshgrid(*[0.5 * upper * (nodes + 1)] * len(linear), indexing="ij")
        x = np.stack(grid, axis=-1).reshape(-1, len(linear))
        volume = np.stack(np.meshgrid(*[weights] * len(linear), indexing="ij"), axis=-1)
        density = np.exp(-0.5 * ((x @ precision) * x).sum(1) + x @ linear)
        density *= volume.reshape(-1, len(linear)).prod(1)
        density /= density.sum()
        return x, density, density @ x, (x * density[:, None]).T @ x

    return moments
