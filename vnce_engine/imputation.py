"""Filling the holes of a table: by its own fitted model, or by fixed values before a fit."""

from enum import StrEnum
from typing import assert_never

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine import truncated_normal
from vnce_engine.blocks import BLOCK_WIDTH, Block
from vnce_engine.mean_field import sweep
from vnce_engine.model import TruncatedGaussian
from vnce_engine.noise import ProductTruncatedNormal, random_uniforms
from vnce_engine.observations import Observations
from vnce_engine.transforms import Transform

# Sweeps until the means of q settle to this share of themselves, or this many.
_TOLERANCE = 1e-8
_MAX_SWEEPS = 200
# Quantiles of q averaged for a mean on the data's own scale.
_NUM_QUANTILES = 32


class Imputation(StrEnum):
    """What NCE does with missing cells, as it has no place for them."""

    MEAN = "mean"
    ZERO = "zero"
    NOISE = "noise"
    DROP = "drop"


def fill(
    observations: Observations, imputation: Imputation, generator: torch.Generator
) -> Observations:
    """Return a table without holes: filled by fixed values or noise, or its complete rows."""
    values, observed = observations.values, observations.observed
    match imputation:
        case Imputation.MEAN:
            filling = (values.sum(dim=0) / observed.sum(dim=0)).expand_as(values)
        case Imputation.ZERO:
            filling = torch.zeros_like(values)
        case Imputation.NOISE:
            noise = ProductTruncatedNormal.fit(observations)
            filling = noise.sample(random_uniforms(values.shape[0], values.shape[1], generator))
        case Imputation.DROP:
            complete = observed.all(dim=1)
            return Observations(values[complete], observed[complete])
        case _:
            assert_never(imputation)
    return Observations(torch.where(observed, values, filling), torch.ones_like(observed))


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
        block = _block(
            observations.values[rows] / scale,
            observations.observed[rows],
            augmented,
            ceiling / scale,
        )
        mu = _settle(block, augmented)
        cells = _means_before(transform, block.cell_mean, mu, scale[block.coordinate])
        filled[rows[block.column].numpy(), block.coordinate.numpy()] = cells
    return filled


def _block(values: Tensor, observed: Tensor, augmented: Tensor, ceiling: Tensor) -> Block:
    """Return a block for sweeps alone; q starts without interactions, where K_ii = 1."""
    linear = -augmented[:-1, -1]
    return Block.of_rows(
        values,
        observed,
        column_mean=truncated_normal.moments(linear, torch.ones_like(linear))[0],
        ceiling=ceiling,
        is_noise=False,
        uniforms=values.new_empty(1, 0),
        owner=torch.arange(len(values)),
        log_noise=values.new_zeros(len(values)),
    )


def _settle(block: Block, augmented: Tensor) -> Tensor:
    """Sweep until the means stay where they are; return mu (p,) of q's factors."""
    for _ in range(_MAX_SWEEPS):
        before = block.cell_mean.clone()
        _, mu = sweep(block, augmented, 1)
        if not ((block.cell_mean - before).abs() > _TOLERANCE * before).any():
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
