"""Filling the holes of a table by its own fitted model."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine import truncated_normal
from vnce_engine.blocks import BLOCK_WIDTH
from vnce_engine.mean_field import IncompleteRows, sweep
from vnce_engine.model import TruncatedGaussian
from vnce_engine.observations import Observations
from vnce_engine.transforms import Transform

# Sweeps until the means of q settle to this share of themselves, or of so many of the column's
# standard deviations given the others where they are more, or this many.
_TOLERANCE = 1e-8
_FAR = 1000.0
_MAX_SWEEPS = 200
# Quantiles of q averaged for a mean on the data's own scale.
_NUM_QUANTILES = 32


def impute(
    model: TruncatedGaussian, X: NDArray[np.float64], transform: Transform, ceiling: Tensor
) -> NDArray[np.float64]:
    """Return X (n, d) with every NaN replaced by its mean under q, on X's own scale.

    `model` and `ceiling` (d,), see `mean_field.ceiling`, are of the transformed columns. q is the
    model's mean-field approximation given the observed cells of a row, which may be none. Observed
    cells are returned as they are, to the last bit.
    """
    observations = Observations.from_array(transform.forward(X))
    scale = model.precision.diagonal().rsqrt()
    augmented = model.with_columns_scaled(1 / scale).augmented()
    filled = np.array(X, dtype=np.float64)
    for rows in torch.arange(observations.num_rows).split(BLOCK_WIDTH):
        block = _incomplete(
            observations.values[rows] / scale,
            observations.observed[rows],
            augmented,
            ceiling / scale,
        )
        mu = _settle(block, augmented)
        cells = _means_before(transform, block.cell_mean, mu, scale[block.coordinate])
        filled[rows[block.column].numpy(), block.coordinate.numpy()] = cells
    return filled


def _incomplete(
    values: Tensor, observed: Tensor, augmented: Tensor, ceiling: Tensor
) -> IncompleteRows:
    """Return rows for sweeps; q starts without interactions, where K_ii = 1."""
    linear = -augmented[:-1, -1]
    mean = truncated_normal.moments(linear, torch.ones_like(linear))[0]
    return IncompleteRows.of(values, observed, mean, ceiling)


def _settle(block: IncompleteRows, augmented: Tensor) -> Tensor:
    """Sweep until the means stay where they are; return mu (p,) of q's factors."""
    for _ in range(_MAX_SWEEPS):
        before = block.cell_mean.clone()
        mu = sweep(block, augmented, 1).mu
        if not ((block.cell_mean - before).abs() > _TOLERANCE * before.clamp(max=_FAR)).any():
            break
    return mu


def _means_before(
    transform: Transform, mean: Tensor, mu: Tensor, scale: Tensor
) -> NDArray[np.float64]:
    """Return the means (p,) of cells before the transform, from q after it, K_ii scaled to 1."""
    if transform is Transform.NONE:
        return (scale * mean).numpy()
    levels = (torch.arange(_NUM_QUANTILES, dtype=mu.dtype) + 0.5) / _NUM_QUANTILES
    draws = scale * truncated_normal.quantile(levels.unsqueeze(1), mu, torch.ones_like(mu))
    means: NDArray[np.float64] = transform.inverse(draws.numpy()).mean(axis=0)
    return means
