"""Filling the missing cells of a table by the exact conditional means of a Gaussian.

Given a row's observed cells o, its missing ones m are normal with mean mu_m - K_mm⁻¹ K_mo
(x_o - mu_o) and covariance K_mm⁻¹. Deviations from mu keep the digits of tables far from zero.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.data.table_transform import TableTransform
from vnce_engine.distributions.cell_means import ClampedCells
from vnce_engine.distributions.gaussian_conditional import BLOCK_ROWS, CompletedRows


def impute_normal(
    mean: Tensor, precision: Tensor, X: NDArray[np.float64], transform: TableTransform
) -> NDArray[np.float64]:
    """Return X (n, d), every NaN at its mean given the observed cells of its row, on X's own scale.

    `mean` (d,) and `precision` (d, d) are of the transformed columns. A normal may go below the
    transform's range, where its least value stands. Observed cells stay the same to the last bit.
    """
    filled = np.array(X, dtype=np.float64)
    columns = torch.arange(len(mean))
    for start in range(0, len(filled), BLOCK_ROWS):
        block = filled[start : start + BLOCK_ROWS]
        deviation = torch.from_numpy(transform.forward(block)) - mean
        rows = CompletedRows.of(precision, 0.0, deviation)
        # That of an observed cell, any number, is not asked for.
        variance = rows.conditionals.covariance().diagonal(dim1=1, dim2=2)
        sigma = torch.where(rows.conditionals.is_missing, variance, 1.0).sqrt()[rows.pattern]
        means = transform.mean_before(ClampedCells(mean + rows.mean, sigma), columns)
        np.copyto(block, means, where=np.isnan(block))
    return filled
