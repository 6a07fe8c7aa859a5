"""Filling the missing cells of a table by its own fitted model."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.contrastive.row_blocks import BLOCK_WIDTH
from vnce_engine.data.observations import Observations
from vnce_engine.data.table_transform import TableTransform
from vnce_engine.distributions import truncated_normal
from vnce_engine.distributions.cell_means import TruncatedCells
from vnce_engine.distributions.definiteness import is_positive_definite
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.distributions.uniforms import sobol_stream
from vnce_engine.inference.drawn_blocks import drawn_blocks, same_for_every_row
from vnce_engine.inference.mean_field import IncompleteRows, sweep

# Draws of a row's missing cells.
_NUM_DRAWS = 128
# Sweeps until the means of q settle to this share of themselves, or of so many of the column's
# standard deviations given the others where they are more, or this many.
_TOLERANCE = 1e-8
_FAR = 1000.0
_MAX_SWEEPS = 200


def impute(
    model: QuadraticModel, X: NDArray[np.float64], transform: TableTransform, ceiling: Tensor
) -> NDArray[np.float64]:
    """Return X (n, d) with every NaN replaced by its conditional mean, on X's own scale.

    `model` and `ceiling` (d,), see `mean_field.ceiling`, are of the transformed columns. The mean
    is the model's given the observed cells of the row, which may be none: exact where one cell is
    missing, by draws of the others where there are more, and by a mean-field approximation if K is
    not positive definite. Observed cells are returned as they are, to the last bit.
    """
    observations = Observations.from_array(transform.forward(X))
    filled = np.array(X, dtype=np.float64)
    if is_positive_definite(model.precision):
        parts = _given_draws(model, observations)
    else:
        parts = missing_cells(model, observations, ceiling)
    for cells in parts:
        means = transform.mean_before(cells.distribution, cells.coordinate)
        if cells.weight is not None:
            means = (cells.weight.numpy() * means).sum(axis=0)
        filled[cells.row.numpy(), cells.coordinate.numpy()] = means
    return filled


class MissingCells(NamedTuple):
    """Some missing cells (p,) of a table, and what they are given the rest of their row."""

    row: Tensor
    coordinate: Tensor
    distribution: TruncatedCells
    """(p,), or (k, p) given each of k draws of the row's other missing cells."""
    weight: Tensor | None = None
    """(k, p) of the draws, adding up to 1; None where there is one distribution."""


def _given_draws(model: QuadraticModel, observations: Observations) -> Iterator[MissingCells]:
    """Yield the exact conditional distributions given draws of all other missing cells, in parts.

    Their mean varies less than that of the draws themselves (Rao-Blackwell).
    """
    scale = model.precision.diagonal().rsqrt()
    augmented = model.with_columns_scaled(1 / scale).augmented()
    num_columns = observations.num_columns
    uniforms = same_for_every_row(sobol_stream(num_columns, 0)(_NUM_DRAWS))
    for rows, block in drawn_blocks(augmented, observations, scale, uniforms):
        columns = block.missing.long()
        # With K_ii scaled to 1 the parent mean of a cell is itself less its row's product with A.
        pull = (augmented @ block.flat_draws).view_as(block.draws)
        index = columns.unsqueeze(1).expand(-1, block.num_draws, -1)
        mu = (block.draws - pull).gather(0, index)  # (m, k, o)
        is_cell = columns < num_columns
        weight = block.draw_weight.expand_as(mu)
        coordinate = columns[is_cell]
        unit = scale[coordinate]
        yield MissingCells(
            rows.expand_as(columns)[is_cell],
            coordinate,
            TruncatedCells(unit * mu.movedim(1, 0)[:, is_cell], unit),
            weight.movedim(1, 0)[:, is_cell],
        )


def missing_cells(
    model: QuadraticModel, observations: Observations, ceiling: Tensor
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
