"""Imputed cells of the truncated Gaussian on the data's own scale."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from vnce_engine.imputation import impute
from vnce_engine.model import TruncatedGaussian
from vnce_engine.transforms import Transform

MODEL = TruncatedGaussian(
    torch.tensor([[2.0, -0.9, 0.3], [-0.9, 1.5, 0.2], [0.3, 0.2, 1.0]], dtype=torch.float64),
    torch.tensor([0.5, -1.0, 0.8], dtype=torch.float64),
    torch.tensor(0.0, dtype=torch.float64),
)
FAR = torch.full((3,), math.inf, dtype=torch.float64)


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
    filled = impute(MODEL, row[None], transform, FAR)
    assert filled[0, missing] == pytest.approx(first / total, rel=1e-8)


def test_a_square_s_mean_is_above_the_square_of_the_mean() -> None:
    rows = np.full((1, 3), np.nan)
    squares = impute(MODEL, rows, Transform.SQRT, FAR)
    roots = impute(MODEL, rows, Transform.NONE, FAR)
    assert (squares > roots**2).all()
