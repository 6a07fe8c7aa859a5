"""Log densities of the truncated Gaussian, missing cells integrated out by draws."""

import math

import numpy as np
import pytest
import torch

from vnce_engine.data.observations import Observations
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.inference.log_density import log_densities, log_normaliser

# Interactions of both signs, of up to .7 of what two columns can have.
K = np.array([[2.0, -1.2, 0.3], [-1.2, 1.5, 0.6], [0.3, 0.6, 1.0]])
H = np.array([0.5, -1.0, 0.8])
MODEL = QuadraticModel(torch.from_numpy(K), torch.from_numpy(H), torch.tensor(math.nan))
NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)
# From 0 on to ten standard deviations and more above the means.
CELLS, WEIGHTS = 6 * (NODES + 1), 6 * WEIGHTS


def densities_of(rows: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = torch.Generator().manual_seed(seed)
    found = log_densities(MODEL, Observations.from_array(rows), generator)
    return found[0].numpy(), found[1].numpy()


def integral(observed: tuple[int, ...], fixed: np.ndarray) -> float:
    """Return log of the integral of exp(-½ xᵀKx + hᵀx) over the cells that are not observed."""
    missing = [j for j in range(3) if j not in observed]
    grids = np.meshgrid(*[CELLS] * len(missing), indexing="ij")
    weights = np.ones_like(grids[0]) if grids else np.ones(())
    for axis in range(len(missing)):
        weights = weights * np.expand_dims(
            WEIGHTS, tuple(i for i in range(len(missing)) if i != axis)
        )
    rows = np.tile(fixed, (weights.size, 1))
    for j, grid in zip(missing, grids, strict=True):
        rows[:, j] = grid.ravel()
    exponent = rows @ H - 0.5 * ((rows @ K) * rows).sum(axis=1)
    return math.log(float(weights.ravel() @ np.exp(exponent)))


@pytest.mark.parametrize("observed", [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_it_is_that_of_quadrature_within_its_error(observed: tuple[int, ...]) -> None:
    fixed = np.array([0.4, 1.7, 2.1])
    row = np.where(np.isin(np.arange(3), observed), fixed, np.nan)
    exact = integral(observed, fixed) - integral((), fixed)
    found, error = densities_of(row[None])
    assert abs(found[0] - exact) <= 5 * error[0]
    assert error[0] < 0.02


def test_the_normaliser_is_that_of_quadrature() -> None:
    found, error = log_normaliser(MODEL, torch.Generator().manual_seed(0))
    assert abs(float(found) - integral((), np.zeros(3))) <= 5 * float(error)
    assert float(error) < 0.005


def test_with_one_cell_missing_or_none_only_the_constant_has_an_error() -> None:
    rows = np.array([[0.4, np.nan, 2.1], [0.4, 1.7, 2.1], [np.nan, 1.7, 2.1], [np.nan] * 2 + [1]])
    error = densities_of(rows)[1]
    constant = float(log_normaliser(MODEL, torch.Generator().manual_seed(0))[1])
    assert error[:3] == pytest.approx(constant, rel=1e-6)
    assert error[3] > 1.1 * constant


@pytest.mark.slow
def test_the_error_is_what_other_draws_bring_about() -> None:
    # A correlation of .95 before truncation, so that the weights of draws vary.
    covariance = torch.full((5, 5), 0.95, dtype=torch.float64) + 0.05 * torch.eye(5).double()
    precision = torch.linalg.inv(covariance)
    model = QuadraticModel(precision, torch.zeros(5).double(), torch.tensor(0.0))
    row = Observations.from_array(np.array([[0.3] + [np.nan] * 4]))
    seeds = [torch.Generator().manual_seed(seed) for seed in range(100)]
    found = [log_densities(model, row, generator) for generator in seeds]
    values = torch.stack([value[0] for value, _ in found])
    stated = torch.stack([error[0] for _, error in found]).square().mean().sqrt()
    # A standard deviation from 100 values has the relative error 1 / √198 = .07.
    assert float(values.std() / stated) == pytest.approx(1, abs=0.35)
    assert float(stated) > 0.005


def test_nothing_observed_has_the_log_density_zero() -> None:
    found, error = densities_of(np.full((2, 3), np.nan))
    assert (found == 0).all()
    assert (error == 0).all()


def test_a_row_s_density_does_not_depend_on_the_others() -> None:
    rng = np.random.default_rng(0)
    rows = rng.gamma(2.0, size=(300, 3))
    rows[rng.random(rows.shape) < 0.5] = np.nan
    together = densities_of(rows)[0]
    alone = np.concatenate([densities_of(row[None])[0] for row in rows[:20]])
    np.testing.assert_allclose(together[:20], alone, rtol=1e-10, atol=1e-12)
