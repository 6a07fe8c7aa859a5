"""Blocks of rows with missing cells, and models to draw those under."""

import numpy as np
import torch
from torch import Tensor

from vnce_engine.contrastive.row_blocks import Block
from vnce_engine.distributions.gibbs import FloatArray
from vnce_engine.distributions.uniforms import open_uniforms


def augmented_of(precision: FloatArray, linear: FloatArray, log_partition: float = 0.3) -> Tensor:
    """Return A of K (d, d), h (d,) and c."""
    column = -linear[:, np.newaxis]
    corner = np.array([[2 * log_partition]])
    return torch.from_numpy(np.block([[precision, column], [column.T, corner]]))


def block_of(values: FloatArray, num_draws: int, seed: int = 0, *, is_noise: bool = False) -> Block:
    """Return a block of rows (b, d), NaN where missing, of noise density 1; of noise, b copies.

    The draws are independent.
    """
    generator = torch.Generator().manual_seed(seed)
    observed = ~torch.from_numpy(np.isnan(values))
    own = torch.from_numpy(np.nan_to_num(values))
    num_rows, num_columns = values.shape
    uniforms = open_uniforms((num_draws * num_rows, num_columns), generator)
    copies = num_draws if is_noise else 1
    return Block.of_rows(
        own.repeat(copies, 1),
        observed,
        is_noise=is_noise,
        uniforms=uniforms.view(num_draws, num_rows, num_columns),
        owner=torch.arange(num_rows).repeat(copies),
        log_noise=torch.zeros(copies * num_rows, dtype=torch.float64),
    )


def five_cells(kind: str) -> tuple[FloatArray, FloatArray]:
    """Return K (6, 6) and h (6,), of which the last five are missing."""
    rng = np.random.default_rng(7)
    unit = np.eye(6)
    if kind == "ring":
        neighbours = np.roll(unit, 1, axis=1) + np.roll(unit, -1, axis=1)
        return 1.05 * unit + 0.5 * neighbours, np.zeros(6)
    linear = rng.normal(size=6)
    if kind == "attracting":
        return unit - 0.18 * (1 - unit), linear
    if kind == "repelling":
        return unit + 0.8 * (1 - unit), linear
    half = rng.normal(size=(6, 6))
    return half @ half.T / 6 + 0.3 * unit, linear


def rows_of_many_masks(num_rows: int, num_columns: int) -> FloatArray:
    """Return rows with none to all but one of their cells missing."""
    rng = np.random.default_rng(2)
    values = rng.gamma(2.0, 0.5, size=(num_rows, num_columns))
    order = rng.random(values.shape).argsort(axis=1)
    values[order < rng.integers(num_columns, size=(num_rows, 1))] = np.nan
    return values
