"""Imputed cells of the truncated Gaussian on the data's own scale."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from vnce_engine.data.rank_normal import RankNormal
from vnce_engine.data.table_transform import TableTransform
from vnce_engine.data.transforms import Transform
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.inference.imputation import impute

MODEL = QuadraticModel(
    torch.tensor([[2.0, -0.9, 0.3], [-0.9, 1.5, 0.2], [0.3, 0.2, 1.0]], dtype=torch.float64),
    torch.tensor([0.5, -1.0, 0.8], dtype=torch.float64),
    torch.tensor(0.0, dtype=torch.float64),
)
FAR = torch.full((3,), math.inf, dtype=torch.float64)
RANKS = RankNormal.fit(np.random.default_rng(0).gamma(2.0, size=300), is_half=True)


def all_columns(transform: Transform | RankNormal) -> TableTransform:
    return TableTransform((transform,) * 3)


@pytest.mark.parametrize("transform", list(Transform))
@pytest.mark.parametrize("missing", [0, 1, 2])
def test_the_only_missing_cell_of_a_row_gets_its_exact_mean(
    missing: int, transform: Transform
) -> None:
    row = transform.inverse([0.4, 1.7, 3.0])
    observed = transform.forward(row)
    row[missing] = np.nan

    def density(y: float) -> float:
        cells = torch.from_numpy(observed.copy())
        cells[missing] = y
        return math.exp(MODEL.log_phi(cells))

    total = quad(density, 0, 15, epsabs=0, epsrel=1e-11)[0]
    first = quad(lambda y: float(transform.inverse(y)) * density(y), 0, 15, epsabs=0, epsrel=1e-11)[
        0
    ]
    filled = impute(MODEL, row[None], all_columns(transform), FAR)
    assert filled[0, missing] == pytest.approx(first / total, rel=1e-8)


def test_a_square_s_mean_is_above_the_square_of_the_mean() -> None:
    rows = np.full((1, 3), np.nan)
    squares = impute(MODEL, rows, all_columns(Transform.SQRT), FAR)
    roots = impute(MODEL, rows, all_columns(Transform.NONE), FAR)
    assert (squares > roots**2).all()


@pytest.mark.parametrize("transform", [*Transform, RANKS])
@pytest.mark.parametrize("correlation", [0.5, 0.9])
def test_two_missing_cells_of_a_row_get_their_exact_means(
    correlation: float, transform: Transform | RankNormal
) -> None:
    covariance = torch.eye(3, dtype=torch.float64)
    covariance[0, 1] = covariance[1, 0] = correlation
    covariance[1, 2] = covariance[2, 1] = 0.3
    precision = torch.linalg.inv(covariance)
    linear = precision @ torch.tensor([0.5, 0.8, 0.2], dtype=torch.float64)
    model = QuadraticModel(precision, linear, torch.tensor(0.0, dtype=torch.float64))
    nodes, weights = np.polynomial.legendre.leggauss(200)
    # Ten standard deviations and more above the means.
    cells, weights = 6 * (nodes + 1), 6 * weights
    first, second = np.meshgrid(cells, cells, indexing="ij")
    row = transform.inverse([0.0, 0.0, 1.1])
    rows = np.stack([first, second, np.full_like(first, 1.1)], axis=-1)
    mass = np.exp(model.log_phi(torch.from_numpy(rows)).numpy()) * np.outer(weights, weights)
    row[:2] = np.nan
    filled = impute(model, row[None], all_columns(transform), FAR)
    for found, cell in zip(filled[0], (first, second), strict=False):
        x = transform.inverse(cell)
        exact = np.average(x, weights=mass)
        spread = math.sqrt(np.average((x - exact) ** 2, weights=mass))
        # One standard error of the mean of 128 independent draws is an eleventh.
        assert abs(found - exact) < 0.06 * spread


def test_a_row_is_filled_the_same_beside_others() -> None:
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(40, 3))
    X[rng.random(X.shape) < 0.5] = np.nan
    together = impute(MODEL, X, all_columns(Transform.CBRT), FAR)
    alone = np.concatenate(
        [impute(MODEL, row[None], all_columns(Transform.CBRT), FAR) for row in X]
    )
    np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_an_indefinite_k_has_means_too() -> None:
    indefinite = QuadraticModel(
        torch.tensor([[1.0, 1.5], [1.5, 1.0]], dtype=torch.float64),
        torch.tensor([1.0, 1.0], dtype=torch.float64),
        torch.tensor(0.0, dtype=torch.float64),
    )
    filled = impute(
        indefinite, np.full((1, 2), np.nan), TableTransform((Transform.NONE,) * 2), FAR[:2]
    )
    assert (filled > 0).all()
    assert (filled < 1).all()
