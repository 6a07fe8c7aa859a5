"""Filling the holes of a table by its own fitted model."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine import truncated_normal
from vnce_engine.blocks import BLOCK_WIDTH
from vnce_engine.cell_means import TruncatedCells
from vnce_engine.mean_field import IncompleteRows, sweep
from vnce_engine.model import TruncatedGaussian
from vnce_engine.observations import Observations
from vnce_engine.transforms import Transform

# Sweeps until the means of q settle to this share of themselves, or of so many of the column's
# standard deviations given the others where they are more, or this many.
_TOLERANCE = 1e-8
_FAR = 1000.0
_MAX_SWEEPS = 200


def impute(
    model: TruncatedGaussian, X: NDArray[np.float64], transform: Transform, ceiling: Tensor
) -> NDArray[np.float64]:
    """Return X (n, d) with every NaN replaced by its mean under q, on X's own scale.

    `model` and `ceiling` (d,), see `mean_field.ceiling`, are of the transformed columns. q is the
    model's mean-field approximation given the observed cells of a row, which may be none. Observed
    cells are returned as they are, to the last bit.
    """
    observations = Observations.from_array(transform.forward(X))
    filled = np.array(X, dtype=np.float64)
    for cells in missing_cells(model, observations, ceiling):
        means = transform.mean_before(cells.distribution)
        filled[cells.row.numpy(), cells.coordinate.numpy()] = means
    return filled


class MissingCells(NamedTuple):
    """Some missing cells (p,) of a table, and q."""

    row: Tensor
    coordinate: Tensor
    distribution: TruncatedCells


def missing_cells(
    model: TruncatedGaussian, observations: Observations, ceiling: Tensor
) -> Iterator[MissingCells]:
    """Yield q, the mean-field approximation given the observed cells of each row, in parts."""
    scale = model.precision.diagonal().rsqrt()
    augmented = model.with_columns_scaled(1 / scale).augmented()
    for rows in torch.arange(observations.num_rows).split(BLOCK_WIDTH):
        block = _incomplete(
            observations.values[rows] / scale,
            observations.observed[rows],
            augmented,
            ceiling / scale,
        )
        mu = _settle(block, augmented)
        # With K_ii scaled to 1, so is sigma.
        unit = scale[block.coordinate]
        distribution = TruncatedCells(unit * mu, unit)
        yield MissingCells(rows[block.column], block.coordinate, distribution)


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
