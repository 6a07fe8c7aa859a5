"""Filling the holes of a table by the exact conditional means of a Gaussian.

Given a row's observed cells o, its missing ones m are normal with mean mu_m - K_mm⁻¹ K_mo
(x_o - mu_o) and covariance K_mm⁻¹. Deviations from mu keep the digits of tables far from zero.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.data.transforms import Transform
from vnce_engine.distributions.cell_means import ClampedCells
from vnce_engine.distributions.gaussian import GroupedRows

# Rows whose patterns' factors are in memory at once.
_BLOCK_ROWS = 4096


def impute_normal(
    mean: Tensor, precision: Tensor, X: NDArray[np.float64], transform: Transform
) -> NDArray[np.float64]:
    """Return X (n, d), every NaN at its mean given the observed cells of its row, on X's own scale.

    `mean` (d,) and `precision` (d, d) are of the transformed columns. A normal may go below the
    transform's range, where its least value stands. Observed cells stay the same to the last bit.
    """
    filled = np.array(X, dtype=np.float64)
    for start in range(0, len(filled), _BLOCK_ROWS):
        block = filled[start : start + _BLOCK_ROWS]
        deviation = torch.from_numpy(transform.forward(block)) - mean
        mu, sigma = _given_observed(deviation, precision)
        if transform is Transform.NONE:
            means = (mean + mu).numpy()
        else:
            means = transform.mean_before(ClampedCells(mean + mu, sigma))
        np.copyto(block, means, where=np.isnan(block))
    return filled


def _given_observed(deviation: Tensor, precision: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation (n, d) of the cells of rows that are NaN where missing.

    Rows are less the model's mean, and so are the means. Observed cells keep their value, and have
    a standard deviation that means nothing.
    """
    rows = GroupedRows.of(deviation)
    factor = rows.factors(precision)
    observed = rows.observed_cells()
    right = torch.where(torch.isnan(deviation), -observed @ precision, 0.0).unsqueeze(2)
    mu = observed + torch.cholesky_solve(right, factor[rows.pattern]).squeeze(2)
    spread = torch.cholesky_inverse(factor).diagonal(dim1=1, dim2=2).sqrt()
    return mu, spread[rows.pattern]
